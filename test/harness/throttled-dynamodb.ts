/** A proxy in front of a DynamoDB server with simulated partitions, which accept a limited number of write units per second. */
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { LOCAL, patient, TABLE } from "./faulty-dynamodb.ts";
import { forwarded } from "./forwarded.ts";

const Text = z.object({ S: z.string() });
const Keyed = z.looseObject({ pk: Text });
const Request = z.looseObject({
  PutRequest: z.optional(z.object({ Item: Keyed })),
  DeleteRequest: z.optional(z.object({ Key: Keyed })),
});
const Batch = z.looseObject({ RequestItems: z.record(z.string(), z.array(Request)) });
const Part = z.looseObject({ Key: z.optional(Keyed), Item: z.optional(Keyed) });
const Transaction = z.looseObject({ TransactItems: z.array(z.record(z.string(), Part)) });
const Answer = z.looseObject({});
type WriteRequest = z.infer<typeof Request>;

interface Bucket {
  left: number;
  /** The value of `performance.now()` at the last use of the bucket. */
  atMs?: number;
}

/** @param unitsPerSecond write units that each partition accepts per second; a partition can save the unused units of one second */
export async function startThrottledDynamoDb(behind: string, partitions: number, unitsPerSecond: number) {
  // Each partition has a bucket of write units, which fills with time. At first it is empty, so a write is refused even on a slow machine.
  const buckets = Array.from({ length: partitions }, (): Bucket => ({ left: 0 }));
  const counts = { refusedCalls: 0, refusedWrites: 0 };

  function bucketOf(pk: string) {
    const bucket = buckets[placeOf(pk, partitions)];
    if (bucket === undefined) throw new Error("there is no such partition");
    const now = performance.now();
    const elapsedMs = now - (bucket.atMs ?? now);
    bucket.left = Math.min(unitsPerSecond, bucket.left + (elapsedMs / 1_000) * unitsPerSecond);
    bucket.atMs = now;
    return bucket;
  }

  /**
   * Takes the units of the writes from their partitions. Returns false and takes none if one of these partitions has no units left. As in
   * DynamoDB, a large write may take more units than are left.
   */
  function takes(...writes: readonly SizedWrite[]): boolean {
    if (writes.some(({ pk }) => bucketOf(pk).left <= 0)) return false;
    for (const { pk, units } of writes) bucketOf(pk).left -= units;
    return true;
  }

  const { endpoint, stop } = await serveOnLoopback(async (request, response) => {
    const operation = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    const body = await text(request);
    const forward = async (changed: string): Promise<string> => {
      const answer = await forwarded(behind, request, changed);
      response.statusCode = answer.statusCode ?? 502;
      return text(answer);
    };
    const refuse = (): void => {
      counts.refusedCalls++;
      counts.refusedWrites++;
      const __type = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
      response.writeHead(400, { "Content-Type": "application/x-amz-json-1.0" });
      response.end(JSON.stringify({ __type, message: "The level of configured throughput was exceeded." }));
    };
    if (/Get|Query/.test(operation)) return void response.end(await forward(body));
    if (operation !== "BatchWriteItem") {
      return takes(...writesIn(operation, body)) ? void response.end(await forward(body)) : refuse();
    }
    const asked = Batch.parse(JSON.parse(body));
    const [[table = "", requests = []] = []] = Object.entries(asked.RequestItems);
    const taken: WriteRequest[] = [];
    const left: WriteRequest[] = [];
    for (const one of requests) (takes({ pk: pkOf(one), units: unitsOf(one) }) ? taken : left).push(one);
    if (taken.length === 0) return refuse();
    counts.refusedWrites += left.length;
    const answer = await forward(JSON.stringify({ ...asked, RequestItems: { [table]: taken } }));
    const UnprocessedItems = left.length === 0 ? {} : { [table]: left };
    response.end(JSON.stringify({ ...Answer.parse(JSON.parse(answer)), UnprocessedItems }));
  });
  return { endpoint, counts, stop };
}

/** Opens the table at the endpoint with the SDK's client. `attempts` is the maximum number of attempts for one call. */
export const tableOn = ({ endpoint }: { readonly endpoint: string }, attempts = 5): Table =>
  openTable(TABLE, dynamoClient({ ...LOCAL, ...patient, endpoint, attempts }));

const pkOf = ({ PutRequest, DeleteRequest }: WriteRequest): string =>
  (PutRequest?.Item ?? DeleteRequest?.Key)?.pk.S ?? "";

interface SizedWrite {
  readonly pk: string;
  readonly units: number;
}

const unitsOf = (write: unknown): number => Math.max(1, Math.ceil(JSON.stringify(write).length / 1_024));

/** Returns the writes of an operation. A write in a transaction uses twice as many units as a single write. */
function writesIn(operation: string, body: string): SizedWrite[] {
  const pkIn = ({ Key, Item }: z.infer<typeof Part>): string => (Key ?? Item)?.pk.S ?? "";
  if (operation !== "TransactWriteItems") {
    const part = Part.parse(JSON.parse(body));
    return [{ pk: pkIn(part), units: unitsOf(part) }];
  }
  const parts = Transaction.parse(JSON.parse(body)).TransactItems.flatMap((entry) => Object.values(entry));
  return parts.map((part) => ({ pk: pkIn(part), units: 2 * unitsOf(part) }));
}

/** Returns the partition of a key. A hash (FNV-1a) spreads consecutive keys over the partitions, as in DynamoDB. */
function placeOf(pk: string, partitions: number): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < pk.length; i++) value = Math.imul(value ^ pk.charCodeAt(i), 0x01000193);
  return (value >>> 0) % partitions;
}
