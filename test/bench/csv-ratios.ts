/**
 * Runs as a separate process. It measures the service's import and export, and plain SDK calls that write and read the same rows. The
 * service and the plain calls are measured in turn, so that other load of the machine affects both.
 */

import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { BatchWriteCommand, DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import { patient, TABLE } from "../harness/faulty-dynamodb.ts";
import { taken } from "./clock.ts";
import { type Blocks, CsvJob, callerOf, jobContextOf, type Ratios, runWhole, uploaded } from "./csv-process.ts";

const ROUNDS = 3;
/** Number of batches that the plain SDK calls write concurrently. An import writes the same number of batches concurrently. */
const LANES = 12;
const BATCH = 25;

const job = CsvJob.parse(JSON.parse(process.argv[2] ?? ""));
const { companyId, endpoint } = job;
const context = jobContextOf(job);
const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const client = DynamoDBDocumentClient.from(
  new DynamoDBClient({ endpoint, region: "us-east-1", credentials, ...patient }),
);

async function read({ from, to }: Blocks): Promise<Item[]> {
  const items: Item[] = [];
  for (let block = from; block <= to; block++) {
    const pages = paginateQuery(
      { client },
      {
        TableName: TABLE,
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": keys.prospectBlock(companyId, block).pk },
      },
    );
    for await (const { Items = [] } of pages) items.push(...Items);
  }
  return items;
}

async function write(items: readonly Item[]): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let at = next; at < items.length; at = next) {
      next += BATCH;
      const some = items.slice(at, at + BATCH).map((Item) => ({ PutRequest: { Item } }));
      const { UnprocessedItems = {} } = await client.send(new BatchWriteCommand({ RequestItems: { [TABLE]: some } }));
      if (Object.keys(UnprocessedItems).length > 0) throw new Error("the server left something unprocessed");
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function exported(): Promise<void> {
  for await (const _ of await exportProspects(context, callerOf(job), {}));
}

/** Returns copies of the rows with other partition keys, so that the plain SDK calls do not overwrite the rows of the service. */
const elsewhere = (items: readonly Item[], round: number): Item[] =>
  items.map((item) => ({ ...item, pk: `elsewhere-${round}#${item.pk}` }));

const sums = { importMs: 0, bareWriteMs: 0, exportMs: 0, bareReadMs: 0 };
const written: Blocks[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const place = await uploaded(context, job);
  sums.importMs += (await taken(async () => written.push(blocksOf(await runWhole(context, place))))).wallMs;
  const items = elsewhere(await read(written.at(-1) ?? { from: 0, to: -1 }), round);
  sums.bareWriteMs += (await taken(() => write(items))).wallMs;
}
for (let round = 0; round < ROUNDS; round++) {
  for (const blocks of written) sums.bareReadMs += (await taken(() => read(blocks))).wallMs;
  sums.exportMs += (await taken(exported)).wallMs;
}
process.stdout.write(JSON.stringify(sums satisfies Ratios));

function blocksOf({ prospectBlocks }: { prospectBlocks: Blocks | null }): Blocks {
  if (prospectBlocks === null) throw new Error("nothing was imported");
  return prospectBlocks;
}
