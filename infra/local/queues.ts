/** SQS and S3 on this machine, in this process and in memory: the server, the template's queues and its buckets. */
import { buildApp } from "fauxqs";
import * as z from "zod/mini";
import { type AwsCall, sqsAt } from "./aws-json.ts";
import { LocalError } from "./error.ts";
import { queueUrl, REGION } from "./names.ts";
import type { Stack } from "./stack.ts";

export interface QueueServer {
  readonly endpoint: string;
  readonly sqs: AwsCall;
  stop(): Promise<void>;
}

export interface Depth {
  readonly waiting: number;
  readonly inFlight: number;
  readonly delayed: number;
}

const QueueRequest = z.looseObject({ QueueUrl: z.string() });

/** Holds a message's group: the server forgets it in standard queues, and fair queueing goes by it. */
export const GROUP_ATTRIBUTE = "local.MessageGroupId";

const Grouped = z.looseObject({
  MessageGroupId: z.optional(z.string()),
  MessageAttributes: z.optional(z.record(z.string(), z.unknown())),
});
const Sent = z.looseObject({ ...Grouped.shape, Entries: z.optional(z.array(Grouped)) });

/** The request with each group kept as an attribute; any other request as it is. */
function withGroups(body: Record<string, unknown>): Record<string, unknown> {
  const sent = z.safeParse(Sent, body);
  if (!sent.success) return body;
  const { Entries, ...rest } = sent.data;
  return { ...keepGroup(rest), ...(Entries !== undefined && { Entries: Entries.map(keepGroup) }) };
}

function keepGroup<T extends z.infer<typeof Grouped>>(entry: T): T {
  const { MessageGroupId, MessageAttributes = {} } = entry;
  if (MessageGroupId === undefined) return entry;
  const group = { DataType: "String", StringValue: MessageGroupId };
  return { ...entry, MessageAttributes: { ...MessageAttributes, [GROUP_ATTRIBUTE]: group } };
}

export async function startQueues(): Promise<QueueServer> {
  const app = buildApp({ logger: false });
  let endpoint = "";
  // The server knows a queue only by a host name that not every resolver finds; clients use the address it listens on.
  app.addHook("preHandler", (request, _reply, done) => {
    // The bytes of a file are an object, too: of one key each.
    const call = request.body instanceof Uint8Array ? undefined : z.safeParse(QueueRequest, request.body);
    if (call?.success === true && call.data.QueueUrl.startsWith(`${endpoint}/`)) {
      request.body = { ...withGroups(call.data), QueueUrl: serversUrl(endpoint, call.data.QueueUrl) };
    }
    done();
  });
  endpoint = await app.listen({ port: 0, host: "127.0.0.1" });
  return { endpoint, sqs: sqsAt(endpoint), stop: () => app.close() };
}

function serversUrl(endpoint: string, url: string): string {
  const { port } = new URL(endpoint);
  return `http://sqs.${REGION}.localhost:${port}${url.slice(endpoint.length)}`;
}

const settable = [
  "VisibilityTimeout",
  "DelaySeconds",
  "MaximumMessageSize",
  "MessageRetentionPeriod",
  "ReceiveMessageWaitTimeSeconds",
] as const;

export async function createQueues({ sqs }: QueueServer, { queues }: Stack): Promise<void> {
  for (const queue of queues) {
    const given = settable.flatMap((name) => (queue[name] === undefined ? [] : [[name, String(queue[name])] as const]));
    const { RedrivePolicy } = queue;
    const redrive = RedrivePolicy === undefined ? {} : { RedrivePolicy: JSON.stringify(RedrivePolicy) };
    await sqs("CreateQueue", { QueueName: queue.name, Attributes: { ...Object.fromEntries(given), ...redrive } });
  }
}

export async function createBuckets({ endpoint }: QueueServer, { buckets }: Stack): Promise<void> {
  for (const { name } of buckets) {
    const { ok, status } = await fetch(`${endpoint}/${name}`, { method: "PUT" });
    if (!ok) throw new LocalError(`${name}: the bucket cannot be made (status ${status})`);
  }
}

const Attributes = z.object({ Attributes: z.record(z.string(), z.string()) });

export async function depthOf({ endpoint, sqs }: QueueServer, name: string): Promise<Depth> {
  const answer = await sqs("GetQueueAttributes", { QueueUrl: queueUrl(endpoint, name), AttributeNames: ["All"] });
  const { Attributes: attributes } = z.parse(Attributes, answer);
  const count = (suffix: string): number => Number(attributes[`ApproximateNumberOfMessages${suffix}`] ?? 0);
  return { waiting: count(""), inFlight: count("NotVisible"), delayed: count("Delayed") };
}

export async function sendMessage({ endpoint, sqs }: QueueServer, name: string, body: object): Promise<void> {
  await sqs("SendMessage", { QueueUrl: queueUrl(endpoint, name), MessageBody: JSON.stringify(body) });
}
