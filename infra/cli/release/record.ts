/**
 * Records the rows that a release stores: starts the local service, sends the requests of `scenario.ts`, and reads the rows. Tests check
 * that the next release can read them.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AttributeValue, paginateScan } from "@aws-sdk/client-dynamodb";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { documentsAt, dynamoDbAt } from "../../local/clients.ts";
import { startLocal } from "../../local/service.ts";
import { type Call, playScenario } from "./scenario.ts";

export interface Recorded {
  readonly companyId: number;
  readonly owner: string;
  /** The rows in DynamoDB's JSON format, with binary values as base64. */
  readonly rows: readonly unknown[];
}

const OWNER = "owner@recorded.test";
/**
 * Number of blocks of 128 ids that are skipped before the recorded company is created. The number is high, so that a test can add the
 * recorded rows to any test table without a conflict of ids.
 */
const FIRST_BLOCK = 70_000;

export async function recordCompany(): Promise<Recorded> {
  const service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1 });
  const receiver = createServer((request, response) => request.resume().on("end", () => response.end()));
  try {
    receiver.listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const { TableName, DynamoDbEndpoint } = service.outputs;
    const table = openTable(TableName, documentsAt(DynamoDbEndpoint));
    await table.write({ update: keys.idCounter(), change: { add: { nextBlock: FIRST_BLOCK } } });
    const owner = { email: OWNER, firstName: "Ora", lastName: "Owner", sub: OWNER };
    const companyId = (await createCompany(contextOn(table), { name: "Recorded", owner })).company.id;
    const call = callAs(service.url, (await service.tokenOf(OWNER)) ?? "");
    const address = receiver.address();
    const port = typeof address === "object" ? address?.port : undefined;
    // Nothing listens on port 9, so webhooks to this port fail.
    await playScenario(call, `http://127.0.0.1:${port}/hook`, "http://127.0.0.1:9/hook");
    const rows: string[] = [];
    for await (const { Items = [] } of paginateScan({ client: dynamoDbAt(DynamoDbEndpoint) }, { TableName })) {
      rows.push(...Items.filter((item) => isOwn(item, companyId)).map(plain));
    }
    return { companyId, owner: OWNER, rows: rows.sort().map((row): unknown => JSON.parse(row)) };
  } finally {
    receiver.close();
    receiver.closeAllConnections();
    await service.stop();
  }
}

function isOwn({ pk, companyId }: Record<string, AttributeValue>, id: number): boolean {
  const key = pk?.S ?? "";
  return (
    key.startsWith(`C#${id}#`) ||
    (/^[ES]#/.test(key) && (companyId?.N === String(id) || key.endsWith("@recorded.test")))
  );
}

const plain = (item: Record<string, AttributeValue>): string =>
  JSON.stringify(item, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );

function callAs(base: string, token: string): Call {
  return async (method, path, body) => {
    const isFile = body instanceof FormData;
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(!isFile && { "Content-Type": "application/json" }) },
      ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
    return text === "" ? undefined : JSON.parse(text);
  };
}
