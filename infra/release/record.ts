/**
 * Records the DynamoDB rows that a release writes. Tests check that later releases can read these rows. This module starts the release's
 * local service, sends the requests of `scenario.ts`, and reads the rows and the responses.
 */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { type AttributeValue, paginateScan, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import * as z from "zod/mini";
import { rawDynamoClient } from "#shared/aws/dynamodb.ts";
import { type Call, playScenario } from "./scenario.ts";

export interface RecordedRows {
  readonly companyId: number;
  readonly owner: string;
  /** The rows in DynamoDB's JSON format, with binary values as base64. */
  readonly rows: readonly unknown[];
  readonly answers: Readonly<Record<string, unknown>>;
}

const OWNER = "owner@recorded.test";
/**
 * Number of blocks of ids that are skipped before the recorded company is created. A block has 128 ids. The number is high, so that a test
 * can add the recorded rows to any test table without a conflict of ids.
 */
const FIRST_BLOCK = 70_000;

const Outputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
const Me = z.object({ company: z.object({ id: z.number() }) });

/** @param root the folder that contains the code of the release */
export async function recordRows(root: string): Promise<RecordedRows> {
  const service = spawn(process.execPath, ["infra/local/start.ts", "--memory"], {
    cwd: root,
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const receiver = createServer((request, response) => request.resume().on("end", () => response.end()));
  try {
    receiver.listen(0, "127.0.0.1");
    await once(receiver, "listening");
    return await recordOn(root, await readyUrl(service.stdout), portOf(receiver.address()));
  } finally {
    service.kill("SIGTERM");
    receiver.close();
    receiver.closeAllConnections();
  }
}

async function readyUrl(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const url = /^ready (\S+)$/.exec(line)?.[1];
    if (url === undefined) continue;
    output.resume();
    return url;
  }
  throw new Error("the service of the release ended before it was ready");
}

const portOf = (address: ReturnType<ReturnType<typeof createServer>["address"]>): number => {
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return address.port;
};

async function recordOn(root: string, base: string, port: number): Promise<RecordedRows> {
  const { TableName, DynamoDbEndpoint } = Outputs.parse(await (await fetch(`${base}/local/outputs`)).json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = rawDynamoClient({ endpoint: DynamoDbEndpoint, region: "us-east-1", credentials });
  await client.send(
    new UpdateItemCommand({
      TableName,
      Key: { pk: { S: "IDS" }, sk: { S: "IDS" } },
      UpdateExpression: "ADD nextBlock :blocks",
      ExpressionAttributeValues: { ":blocks": { N: String(FIRST_BLOCK) } },
    }),
  );
  const create = ["infra/cli/company.ts", "create", "--name", "Recorded", "--owner", OWNER];
  await promisify(execFile)(process.execPath, create, { cwd: root, env: { ...process.env, PORT: new URL(base).port } });
  const call = await callAs(base, OWNER);
  const companyId = Me.parse(await call("GET", "/api/me")).company.id;
  // Nothing listens on port 9, so webhooks to this port fail.
  const paths = await playScenario(call, `http://127.0.0.1:${port}/hook`, "http://127.0.0.1:9/hook");
  const answers: Record<string, unknown> = {};
  for (const path of paths) answers[path] = await call("GET", path);
  const rows: unknown[] = [];
  for await (const { Items = [] } of paginateScan({ client }, { TableName })) {
    rows.push(...Items.filter((item) => isOwn(item, companyId)).map(plain));
  }
  client.destroy();
  const sorted = rows.map((row) => JSON.stringify(row)).sort();
  return { companyId, owner: OWNER, rows: sorted.map((row): unknown => JSON.parse(row)), answers };
}

function isOwn({ pk, companyId }: Record<string, AttributeValue>, id: number): boolean {
  const key = pk?.S ?? "";
  return (
    key.startsWith(`C#${id}#`) ||
    (/^[ES]#/.test(key) && (companyId?.N === String(id) || key.endsWith("@recorded.test")))
  );
}

const plain = (item: Record<string, AttributeValue>): unknown =>
  JSON.parse(
    JSON.stringify(item, (_, value: unknown) => (isBytes(value) ? Buffer.from(value).toString("base64") : value)),
  );

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;

async function callAs(base: string, email: string): Promise<Call> {
  const token = await (await fetch(`${base}/local/token`, { method: "POST", body: JSON.stringify({ email }) })).text();
  return async (method, path, body) => {
    const isFile = body instanceof FormData;
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token.trim()}`, ...(!isFile && { "Content-Type": "application/json" }) },
      ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
    return text === "" ? undefined : JSON.parse(text);
  };
}
