/** A table with rows of every kind, a bucket and a user pool, for tests of commands that export, erase and restore companies. */
import { text } from "node:stream/consumers";
import { ResourceInUseException } from "@aws-sdk/client-dynamodb";
import { CreateBucketCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { paginateScan } from "@aws-sdk/lib-dynamodb";
import { afterAll } from "vitest";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { s3Client } from "#shared/aws/s3.ts";
import { contextOn } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { families, type Key } from "#shared/db/keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { type ErasureContext, QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { allPrefixes } from "../../../infra/cli/company/export.ts";
import { keyOfRow, storesAt } from "../../../infra/cli/company/rows.ts";
import { suspend } from "../../../infra/cli/company/suspension.ts";
import { startQueues } from "../../../infra/local/engines/queues.ts";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { createTable, LOCAL, patient, startFaultyDynamoDb, TABLE } from "../../harness/faulty-dynamodb.ts";
import { memoryIdentities } from "../../harness/memory-identities.ts";
import { answerPool } from "../../harness/user-pool.ts";
import { createUser } from "../../harness/verbs.ts";
import { plannedKills } from "./planned-kills.ts";

const BUCKET = "files";
/** The previous table of the deployment, which still exists after a switch to a restored table. */
const OLD_TABLE = "Canvassing-old";
const local = { ...LOCAL, ...patient };
/** What `remainsOf` returns if the two tables and the bucket contain nothing of the company. */
export const nothing = { rows: {}, others: { [OLD_TABLE]: {} }, files: 0 };

/** Starts the simulated services. Call this function once, at the top of a test file. */
export async function companyScene() {
  const db = await startFaultyDynamoDb();
  const queues = await startQueues();
  const inPool = memoryIdentities();
  const users = inPool.subjects;
  const pool = await serveOnLoopback(async (request, response) => {
    const operation = String(request.headers["x-amz-target"]).split(".")[1];
    const { status, body } = answerPool(users, operation, await text(request));
    response.writeHead(status, { "Content-Type": "application/x-amz-json-1.1" }).end(JSON.stringify(body));
  });
  afterAll(async () => {
    pool.stop();
    await queues.stop();
    await db.stop();
  });
  const kills = plannedKills();
  const client = dynamoClient({ ...local, endpoint: db.directEndpoint });
  client.middlewareStack.add(kills.middleware, { step: "initialize" });
  const s3 = s3Client({ ...local, endpoint: queues.endpoint });
  s3.middlewareStack.add(kills.middleware, { step: "initialize" });
  const cognito = cognitoClient({ ...local, endpoint: pool.endpoint });
  cognito.middlewareStack.add(kills.middleware, { step: "initialize" });
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  const time = { now: Date.UTC(2026, 5, 1, 12) };
  const clock = { now: () => time.now };
  // Another test file in the same process may already have created the table. Its old rows do no harm: each test has its own company.
  await createTable(db.directEndpoint, OLD_TABLE).catch((error: unknown) => {
    if (!(error instanceof ResourceInUseException)) throw error;
  });
  const storeOf = storesAt(client, { "read-units": 1e9, "write-units": 1e9 });
  const rows = storeOf(TABLE);
  const { table } = rows;
  const old = storeOf(OLD_TABLE);
  const context: ErasureContext = {
    rows,
    others: [old],
    files: { s3, bucket: BUCKET },
    pool: { id: "pool-1", client: cognito },
    clock,
    wait: async (ms) => {
      time.now += ms;
    },
  };

  /** Creates a company with users, files and rows of every key family. Returns its id. */
  async function company(name: string): Promise<number> {
    const api = contextOn(table, clock);
    const email = `owner@${name}.test`;
    const owner = { email, firstName: "Olga", lastName: "Owner", ...(await inPool.invite(email)) };
    const made = await createCompany(api, { name, owner });
    const companyId = made.company.id;
    const caller = { companyId, userId: made.owner.id, role: "owner", permissions: [] } as const;
    const rep = { firstName: "Rita", lastName: "Rep", role: "sales" as const, permissions: [] };
    await createUser(api, inPool, caller, { ...rep, email: `rep@${name}.test` });
    await table.batchPut(rowsOfEveryFamily(companyId));
    for (const prefix of allPrefixes(companyId)) {
      await s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: `${prefix}1.csv`, Body: `file of ${name}` }));
    }
    return companyId;
  }

  let names = 0;
  const newName = (): string => `company-${names++}`;

  /** Creates a company that was suspended long enough ago to be erased. */
  async function suspended(): Promise<{ name: string; companyId: number }> {
    const name = newName();
    const companyId = await company(name);
    await suspend({ table, clock }, companyId);
    time.now += QUIET_MS;
    return { name, companyId };
  }

  async function allRows(): Promise<Item[]> {
    const pages = paginateScan({ client }, { TableName: TABLE, ConsistentRead: true });
    return (await Array.fromAsync(pages)).flatMap(({ Items = [] }) => Items);
  }

  /** Copies the company's rows into the old table. Returns the e-mail of a new user whom only the old table and the user pool have. */
  async function copyToOld(companyId: number, name: string): Promise<string> {
    const email = `late@${name}.test`;
    const { sub } = await inPool.invite(email);
    const id = 1_000_000 + companyId;
    const own = (await allRows()).filter((row) => belongs(companyId, row));
    const user = own.find(({ type }) => type === "user");
    await old.table.batchPut([
      ...own.map((row) => ({ ...row, ...keyOfRow(row) })),
      { ...user, ...keys.user(companyId, id), id, sub, email },
    ]);
    return email;
  }

  /** Returns all rows of the table that do not belong to the company. */
  const others = async (companyId: number): Promise<Item[]> =>
    (await allRows())
      .filter((row) => !belongs(companyId, row))
      .toSorted((one, other) => textOf(one).localeCompare(textOf(other)));
  return { context, time, users, kills, newName, company, suspended, copyToOld, others };
}

const textOf = ({ pk, sk }: Item): string => `${pk} ${sk}`;
const belongs = (companyId: number, { pk, sk, companyId: owner }: Item): boolean =>
  String(pk).startsWith(`C#${companyId}#`) ||
  sk === `COMPANY#${companyId}` ||
  (!/^C#/.test(String(pk)) && owner === companyId);

/**
 * Returns two rows for each pattern of a company's partition keys. The patterns come from the service, so the tests include each new
 * pattern.
 */
function rowsOfEveryFamily(companyId: number): (Key & Item)[] {
  const patterns = Object.values(families).filter((pattern) => pattern.startsWith("C#*"));
  return patterns.flatMap((pattern) =>
    ["Y#1", "Z#1"].map((sk) => ({
      pk: pattern.replace("*", String(companyId)).replace("*", "1"),
      sk,
      type: "test",
    })),
  );
}
