/**
 * Starts the local servers of DynamoDB, SQS, S3 and KMS, and creates the tables, queues, buckets and keys of the CloudFormation templates
 * on these servers.
 */
import { dynamoDbAt } from "./clients.ts";
import type { DataDir } from "./data-dir.ts";
import { connectDynamoDb, dropTable, ensureTable, startDynamoDb } from "./dynamodb.ts";
import type { Servers } from "./host.ts";
import { type KeyServer, startKms } from "./kms.ts";
import { keyArn } from "./names.ts";
import type { LocalOptions } from "./options.ts";
import { keyRefusal } from "./rights.ts";
import { type FileServer, startFiles } from "./s3.ts";
import { createBuckets, createQueues, type Depth, depthOf, startQueues } from "./sqs.ts";
import type { Stack } from "./stack.ts";

export interface StartedServers extends Servers {
  /**
   * Environment variables that all functions get in addition to their own: the endpoints of the local servers and the access keys for them.
   */
  readonly variables: Readonly<Record<string, string>>;
  /** Resolves with the reason if the DynamoDB server ends unexpectedly. */
  readonly failed: Promise<string>;
  readonly files: FileServer;
  readonly kms: KeyServer;
}

export async function startServers(
  { dynamoDbEndpoint }: LocalOptions,
  dir: DataDir,
  undo: (() => unknown)[],
): Promise<StartedServers> {
  const dynamoDb =
    dynamoDbEndpoint === undefined ? await startDynamoDb(dir.database) : await connectDynamoDb(dynamoDbEndpoint);
  undo.push(() => dynamoDb.stop());
  const queues = await startQueues(dir.queues);
  undo.push(() => queues.stop());
  const files = await startFiles(queues);
  undo.push(() => files.stop());
  const kms = await startKms(dir.encryptionKeys);
  undo.push(() => kms.stop());
  return {
    kms,
    dynamoDb: dynamoDbAt(dynamoDb.endpoint),
    dynamoDbEndpoint: dynamoDb.endpoint,
    failed: dynamoDb.failed,
    queues,
    files,
    variables: {
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_ENDPOINT_URL_DYNAMODB: dynamoDb.endpoint,
      AWS_ENDPOINT_URL_SQS: queues.endpoint,
      AWS_ENDPOINT_URL_S3: files.endpoint,
      AWS_ENDPOINT_URL_KMS: kms.endpoint,
    },
  };
}

/**
 * Creates the queues, buckets and tables. With the option `fresh`, it first deletes the tables that exist. Returns true if a table was
 * created, so that the caller loads the demo data.
 */
export async function createStorage(stack: Stack, servers: StartedServers, options: LocalOptions): Promise<boolean> {
  await createQueues(servers.queues, stack);
  await createBuckets(servers.queues, stack);
  servers.files.configure(stack.buckets);
  let isNew = false;
  for (const table of stack.tables) {
    if (options.fresh === true) await dropTable(servers.dynamoDb, table.name);
    isNew = (await ensureTable(servers.dynamoDb, table)) || isNew;
  }
  return isNew;
}

/**
 * Creates the KMS keys of the CloudFormation templates. After this call, the KMS server refuses each request of a Lambda function that the
 * function's IAM policies do not allow.
 */
export function serveKeys({ keys, functions }: Stack, { kms }: StartedServers, templates: readonly unknown[]): void {
  const arns = keys.map(({ name }) => keyArn(name));
  kms.serve(arns, keyRefusal(templates, functions));
}

export async function depths({ queues }: Stack, servers: Servers): Promise<Record<string, Depth>> {
  const all = queues.map(async ({ name }) => [name, await depthOf(servers.queues, name)] as const);
  return Object.fromEntries(await Promise.all(all));
}
