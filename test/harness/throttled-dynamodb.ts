/** A proxy in front of a DynamoDB server. It simulates partitions that accept a limited number of write units per second, as on AWS. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";

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

export interface ThrottledDynamoDb {
  readonly endpoint: string;
  readonly counts: { calls: number; refusedCalls: number; units: number };
  stop(): void;
}

/**
 * @param unitsPerSecond Number of write units that each simulated partition accepts per second. A partition can save unused units, at most
 * those of one second.
 */
export async function startThrottledDynamoDb(
  behind: string,
  partitions: number,
  unitsPerSecond: number,
): Promise<ThrottledDynamoDb> {
  const buckets = Array.from({ length: partitions }, () => ({ left: unitsPerSecond, atMs: Date.now() }));
  const counts = { calls: 0, refusedCalls: 0, units: 0 };

  /**
   * Returns true if the partition accepts the write. Like DynamoDB, it accepts every write while it has units left. A large write may use
   * more units than are left. The number of units then becomes negative, and the partition refuses writes until it is positive again.
   */
  function takes(pk: string, bytes: number): boolean {
    const bucket = buckets[placeOf(pk, partitions)];
    if (bucket === undefined) throw new Error("there is no such partition");
    const now = Date.now();
    bucket.left = Math.min(unitsPerSecond, bucket.left + ((now - bucket.atMs) / 1_000) * unitsPerSecond);
    bucket.atMs = now;
    if (bucket.left <= 0) return false;
    const units = Math.max(1, Math.ceil(bytes / 1_024));
    bucket.left -= units;
    counts.units += units;
    return true;
  }

  const server = createServer(async (request, response) => {
    const operation = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    const body = await text(request);
    const forward = async (changed: string): Promise<string> => {
      const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
      const answer = await fetch(behind, { method: "POST", headers: textsIn(headers), body: changed });
      response.statusCode = answer.status;
      return answer.text();
    };
    const refuse = (): void => {
      counts.refusedCalls++;
      const __type = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
      response.writeHead(400, { "Content-Type": "application/x-amz-json-1.0" });
      response.end(JSON.stringify({ __type, message: "The level of configured throughput was exceeded." }));
    };
    if (/Get|Query/.test(operation)) return void response.end(await forward(body));
    counts.calls++;
    if (operation !== "BatchWriteItem") {
      const refused = keysIn(operation, body).some((pk) => !takes(pk, body.length));
      return refused ? refuse() : void response.end(await forward(body));
    }
    const asked = Batch.parse(JSON.parse(body));
    const [[table = "", requests = []] = []] = Object.entries(asked.RequestItems);
    const taken: WriteRequest[] = [];
    const left: WriteRequest[] = [];
    for (const one of requests) (takes(pkOf(one), JSON.stringify(one).length) ? taken : left).push(one);
    if (taken.length === 0) return refuse();
    const answer = await forward(JSON.stringify({ ...asked, RequestItems: { [table]: taken } }));
    const UnprocessedItems = left.length === 0 ? {} : { [table]: left };
    response.end(JSON.stringify({ ...Answer.parse(JSON.parse(answer)), UnprocessedItems }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no address");
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    counts,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const textsIn = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

const pkOf = ({ PutRequest, DeleteRequest }: WriteRequest): string =>
  (PutRequest?.Item ?? DeleteRequest?.Key)?.pk.S ?? "";

function keysIn(operation: string, body: string): string[] {
  const parts =
    operation === "TransactWriteItems"
      ? Transaction.parse(JSON.parse(body)).TransactItems.flatMap((entry) => Object.values(entry))
      : [Part.parse(JSON.parse(body))];
  return parts.map(({ Key, Item }) => (Key ?? Item)?.pk.S ?? "");
}

/**
 * Returns the number of the partition. Like DynamoDB, it uses a hash of the partition key (FNV-1a), so consecutive keys are spread over the
 * partitions.
 */
function placeOf(pk: string, partitions: number): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < pk.length; i++) value = Math.imul(value ^ pk.charCodeAt(i), 0x01000193);
  return (value >>> 0) % partitions;
}
