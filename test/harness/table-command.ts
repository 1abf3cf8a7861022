/** Runs a command of the project as a separate process on a real table. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { type LocalServer, serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { faultyDynamoDb } from "./fault-test.ts";
import { TABLE } from "./faulty-dynamodb.ts";

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

  async function run(...args: string[]) {
    const { port: PORT } = new URL(outputs.endpoint);
    const child = spawn(process.execPath, [script, ...args], {
      cwd: root,
      env: { ...process.env, PORT },
    });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    return { stdout, stderr, code };
  }

  return { db, run };
}
