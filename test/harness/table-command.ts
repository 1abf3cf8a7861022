/** Runs a command of the project as a separate process on a real table. */
import { afterAll, beforeAll, expect } from "vitest";
import { type LocalServer, serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { faultyDynamoDb } from "./fault-test.ts";
import { TABLE } from "./faulty-dynamodb.ts";
import { startProcess } from "./process.ts";

export const target = expect.stringMatching(/^target: local service at http:\S+\n$/);

/** Starts the table before the tests of a file. Call this function once, at the top of the file. `script` is the path of the command. */
export function tableCommand(script: string) {
  const db = faultyDynamoDb();
  /** A simulated local service. The command asks it for the address of the table. */
  let outputs: LocalServer;
  beforeAll(async () => {
    outputs = await serveOnLoopback(async (_, response) =>
      response.end(
        JSON.stringify({ TableName: TABLE, DynamoDbEndpoint: db.directEndpoint, SqsEndpoint: "http://127.0.0.1:1" }),
      ),
    );
  });
  afterAll(() => outputs.stop());

  const run = (...args: string[]) => {
    const { port: PORT } = new URL(outputs.endpoint);
    return startProcess(process.execPath, [script, ...args], { ...process.env, PORT }).ended;
  };

  return { db, run };
}
