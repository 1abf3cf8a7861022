/** Publishes stream batches of the maximum size, with changes of the largest territory, in a worker thread with a small heap. */
import { parentPort, workerData } from "node:worker_threads";
import { marshall } from "@aws-sdk/util-dynamodb";
import type { DynamoDBRecord } from "aws-lambda";
import * as z from "zod/mini";
import { publishStream } from "#shared/webhooks/events/publish.ts";
import { imageOf } from "../../infra/local/sources/stream-record.ts";
import { tableAt } from "../harness/faulty-dynamodb.ts";
import { territoryChange } from "./fan-out-pipeline.ts";
import { quietContext, START } from "./fixtures.ts";

const { endpoint, companyId, batches, records, points } = z.parse(
  z.object({ endpoint: z.string(), companyId: z.int(), batches: z.int(), records: z.int(), points: z.int() }),
  workerData,
);
const table = tableAt(endpoint);
let messages = 0;
const handler = publishStream(() =>
  quietContext(table, { now: () => START }, async (entries) => {
    messages += entries.length;
  }),
);
const asStreamed = (item: Record<string, unknown> = {}) => imageOf(marshall(item, { removeUndefinedValues: true }));
let failed = 0;
let bytes = 0;
for (let batch = 0; batch < batches; batch++) {
  const Records = Array.from({ length: records }, (_, i): DynamoDBRecord => {
    const { before, after } = territoryChange(companyId, 2 + batch * records + i, points);
    return { dynamodb: { SequenceNumber: String(i), OldImage: asStreamed(before), NewImage: asStreamed(after) } };
  });
  const event = { Records };
  bytes = JSON.stringify(event).length;
  failed += (await handler(event)).batchItemFailures.length;
}
parentPort?.postMessage({ messages, failed, bytes });
