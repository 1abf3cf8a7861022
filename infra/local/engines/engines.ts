/** Starts the local servers of DynamoDB, SQS, S3 and KMS, and creates the template's tables, queues and buckets on them. */
import { dynamoDbAt } from "../servers/clients.ts";
import type { Stack } from "../template/stack.ts";
import { connectDynamoDb, startDynamoDb } from "./dynamodb.ts";
import { startKms } from "./kms.ts";
import { createBuckets, createQueues, depthOf, startQueues } from "./queues.ts";
import { dropTable, ensureTable } from "./tables.ts";

export type Engines = Awaited<ReturnType<typeof startEngines>>;

/** Where the servers store their data. A server without a place stores its data only in memory. */
export interface Places {
  readonly database?: string;
  readonly queues?: string;
  readonly encryptionKeys?: string;
}

/** Starts the servers. `undo` gets, for each started server, a function that stops the server. */
export async function startEngines(
  dynamoDbEndpoint: string | undefined,
  places: Places,
  undo: (step: () => unknown) => void,
) {
  const dynamoDb =
    dynamoDbEndpoint === undefined ? await startDynamoDb(places.database) : await connectDynamoDb(dynamoDbEndpoint);
  undo(() => dynamoDb.stop());
  const queues = await startQueues(places.queues);
  undo(() => queues.stop());
  const kms = await startKms(places.encryptionKeys);
  undo(() => kms.stop());
  return {
    kms,
    dynamoDb: dynamoDbAt(dynamoDb.endpoint),
    dynamoDbEndpoint: dynamoDb.endpoint,
    tableVersion: dynamoDb.version,
    failed: dynamoDb.failed,
    queues,
    /** Environment variables that all functions get in addition to their own. */
    variables: {
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_ENDPOINT_URL_DYNAMODB: dynamoDb.endpoint,
      AWS_ENDPOINT_URL_SQS: queues.endpoint,
      AWS_ENDPOINT_URL_S3: queues.endpoint,
      AWS_ENDPOINT_URL_KMS: kms.endpoint,
    },
  };
}

/** Creates the queues, buckets and tables. With `fresh`, first deletes old tables. Returns true if a table is new and needs demo data. */
export async function createStorage({ queues, dynamoDb }: Engines, stack: Stack, fresh: boolean): Promise<boolean> {
  await createQueues(queues, stack);
  await createBuckets(queues, stack);
  let isNew = false;
  for (const table of stack.tables) {
    if (fresh) await dropTable(dynamoDb, table.name);
    isNew = (await ensureTable(dynamoDb, table)) || isNew;
  }
  return isNew;
}

export async function depths({ queues }: Engines, stack: Stack) {
  const all = stack.queues.map(async ({ name }) => [name, await depthOf(queues, name)] as const);
  return Object.fromEntries(await Promise.all(all));
}
