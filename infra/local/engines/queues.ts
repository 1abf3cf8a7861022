/** Starts fauxqs, the local server of SQS and S3, and creates the queues and buckets of the CloudFormation templates on it. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CreateBucketCommand } from "@aws-sdk/client-s3";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { startFauxqs } from "fauxqs";
import * as z from "zod/mini";
import { s3At, sqsAt } from "../servers/clients.ts";
import { queueUrl } from "../template/names.ts";
import type { Stack } from "../template/stack.ts";
import { type App, BucketRules } from "./bucket.ts";

export type QueueServer = Awaited<ReturnType<typeof startQueues>>;

const DATABASE = "fauxqs.db";

/** @param directory stores messages and objects across restarts and SIGKILL. If it is undefined, they are in memory only. */
export async function startQueues(directory?: string) {
  const isNew = directory === undefined || !existsSync(join(directory, DATABASE));
  if (!isNew) releaseInFlight(join(directory, DATABASE));
  const bucket = new BucketRules((name, message) => sendMessage({ endpoint, sqs }, name, message));
  const server = await start(directory, bucket);
  const endpoint = `http://127.0.0.1:${server.port}`;
  const sqs = sqsAt(endpoint);
  const stop = (): Promise<void> => {
    sqs.destroy();
    return server.stop();
  };
  return { endpoint, sqs, bucket, isNew, stop };
}

/**
 * fauxqs has no options for its Fastify instance and its SQLite database, so this function changes both while fauxqs creates them. By
 * default, SQLite calls fsync whenever a message is sent, received or deleted, which takes about 4 ms. Without fsync, a SIGKILL still loses
 * no data.
 */
function start(directory: string | undefined, bucket: BucketRules): ReturnType<typeof startFauxqs> {
  const adapt = (message: unknown): void => {
    if (!isInitialization(message)) return;
    closeRemoteConnections(message.fastify);
    keepGroups(message.fastify);
    bucket.addTo(message.fastify);
  };
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function withoutSync(this: DatabaseSync, sql: string): void {
    exec.call(this, "PRAGMA synchronous = NORMAL");
    exec.call(this, sql);
  };
  subscribe(INITIALIZATION, adapt);
  try {
    return startFauxqs({ port: 0, logger: false, ...(directory !== undefined && { dataDir: directory }) });
  } finally {
    DatabaseSync.prototype.exec = exec;
    unsubscribe(INITIALIZATION, adapt);
  }
}

/** Makes all messages in flight visible again, because the process that received them has ended. */
function releaseInFlight(file: string): void {
  const messages = new DatabaseSync(file);
  try {
    messages.exec("UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL");
  } finally {
    messages.close();
  }
}

const INITIALIZATION = "fastify.initialization";
const isInitialization = (message: unknown): message is { readonly fastify: App } =>
  typeof message === "object" && message !== null && "fastify" in message;

const LOOPBACK = /^(?:::1|(?:::ffff:)?127\.)/;

/** Closes connections from other machines, because fauxqs listens on all network interfaces and verifies no signature. */
function closeRemoteConnections({ server }: App): void {
  server.on("connection", (socket) => {
    if (!LOOPBACK.test(socket.remoteAddress ?? "")) socket.destroy();
  });
}

function keepGroups(app: App): void {
  app.addHook("preHandler", (request, _reply, done) => {
    const isSent = String(request.headers["x-amz-target"]).startsWith("AmazonSQS.SendMessage");
    if (isSent) request.body = withGroups(request.body);
    done();
  });
}

/** The message attribute with the message group. fauxqs drops the `MessageGroupId` of standard queues, but `FairQueue` needs it. */
export const GROUP_ATTRIBUTE = "local.MessageGroupId";

const Grouped = z.looseObject({
  MessageGroupId: z.optional(z.string()),
  MessageAttributes: z.optional(z.record(z.string(), z.unknown())),
});
const Sent = z.looseObject({ ...Grouped.shape, Entries: z.optional(z.array(Grouped)) });

function withGroups(body: unknown): unknown {
  const sent = z.safeParse(Sent, body);
  if (!sent.success) return body;
  const { Entries, ...rest } = sent.data;
  return { ...withGroup(rest), ...(Entries !== undefined && { Entries: Entries.map(withGroup) }) };
}

function withGroup<T extends z.infer<typeof Grouped>>(entry: T): T {
  const { MessageGroupId, MessageAttributes = {} } = entry;
  if (MessageGroupId === undefined) return entry;
  const group = { DataType: "String", StringValue: MessageGroupId };
  return { ...entry, MessageAttributes: { ...MessageAttributes, [GROUP_ATTRIBUTE]: group } };
}

export async function createQueues({ endpoint, sqs }: QueueServer, { queues }: Stack): Promise<void> {
  for (const queue of queues) {
    const { name: QueueName, VisibilityTimeout, MessageRetentionPeriod, RedrivePolicy } = queue;
    const Attributes = {
      ...(VisibilityTimeout !== undefined && { VisibilityTimeout: String(VisibilityTimeout) }),
      ...(MessageRetentionPeriod !== undefined && { MessageRetentionPeriod: String(MessageRetentionPeriod) }),
      ...(RedrivePolicy !== undefined && { RedrivePolicy: JSON.stringify(RedrivePolicy) }),
    };
    // CreateQueue fails if the queue exists with other settings. So it is called without settings, and a second call sets them.
    await sqs.send(new CreateQueueCommand({ QueueName }));
    await sqs.send(new SetQueueAttributesCommand({ QueueUrl: queueUrl(endpoint, QueueName), Attributes }));
  }
}

export async function createBuckets({ endpoint, bucket }: QueueServer, { buckets }: Stack): Promise<void> {
  bucket.buckets = buckets;
  const s3 = s3At(endpoint);
  for (const { name } of buckets) await s3.send(new CreateBucketCommand({ Bucket: name }));
  s3.destroy();
}

export async function depthOf({ endpoint, sqs }: QueueServer, name: string) {
  const command = new GetQueueAttributesCommand({ QueueUrl: queueUrl(endpoint, name), AttributeNames: ["All"] });
  const { Attributes = {} } = await sqs.send(command);
  const count = (suffix: "" | "NotVisible" | "Delayed"): number =>
    Number(Attributes[`ApproximateNumberOfMessages${suffix}`] ?? 0);
  return { waiting: count(""), inFlight: count("NotVisible"), delayed: count("Delayed") };
}

export async function sendMessage(
  { endpoint, sqs }: { readonly endpoint: string; readonly sqs: SQSClient },
  name: string,
  body: object,
): Promise<void> {
  const command = new SendMessageCommand({ QueueUrl: queueUrl(endpoint, name), MessageBody: JSON.stringify(body) });
  await sqs.send(command);
}
