/** The queues of work on files: S3 tells the one of imports of uploads, the service itself both of work that goes on. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { setting } from "#shared/config.ts";
import { Id } from "#shared/schema.ts";
import { regionInUse, signerOf } from "#shared/signing.ts";

export interface JobPlace {
  readonly companyId: number;
  readonly id: number;
}

/** Says that there is something to be done: what it is stands in the table. */
export interface JobMessage extends JobPlace {
  readonly kind: "import" | "export";
}

/** Reads a message into the one job that it names. */
export const oneJob = (kind: JobMessage["kind"]) =>
  z.pipe(
    z.object({ kind: z.literal(kind), companyId: Id, id: Id }),
    z.transform(({ companyId, id }): JobPlace[] => [{ companyId, id }]),
  );

export interface JobQueue {
  send(message: JobMessage): Promise<void>;
  /** Lets a message that was received of this queue come back after so many seconds. */
  returnIn(kind: JobMessage["kind"], receiptHandle: string, seconds: number): Promise<void>;
}

/** One for each kind: an export waits for no import, and their code is not in one bundle. */
const settings = { import: "IMPORT_QUEUE_URL", export: "EXPORT_QUEUE_URL" } as const;

const TRIES = 3;
const TIMEOUT_MS = 3_000;

/** Nothing is read or connected before the first message. */
export function openJobQueues(): JobQueue {
  const call = (kind: JobMessage["kind"], action: string, fields: object): Promise<void> =>
    untilAnswered(action, JSON.stringify({ QueueUrl: setting(settings[kind]), ...fields }));
  return {
    send: (message) =>
      call(message.kind, "SendMessage", {
        MessageBody: JSON.stringify(message),
        MessageGroupId: String(message.companyId),
      }),
    returnIn: (kind, ReceiptHandle, VisibilityTimeout) =>
      call(kind, "ChangeMessageVisibility", { ReceiptHandle, VisibilityTimeout }),
  };
}

/** A message may be sent twice, which its receiver expects. */
async function untilAnswered(action: string, body: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await post(action, body);
      await answer.arrayBuffer();
      if (answer.ok) return;
      throw new Error(`the queue answered ${answer.status}`);
    } catch (error) {
      if (attempt === TRIES) throw error;
      await sleep(Math.random() * 100 * 2 ** attempt);
    }
  }
}

/** The endpoint is that of the service, whatever host a queue's URL names. */
async function post(action: string, body: string): Promise<Response> {
  const endpoint = process.env.AWS_ENDPOINT_URL_SQS ?? process.env.AWS_ENDPOINT_URL;
  const url = new URL(endpoint ?? `https://sqs.${regionInUse()}.amazonaws.com`);
  const { protocol, hostname, host, port, pathname: path } = url;
  const { headers } = await signerOf("sqs").sign({
    method: "POST",
    protocol,
    hostname,
    ...(port !== "" && { port: Number(port) }),
    path,
    query: {},
    headers: { host, "content-type": "application/x-amz-json-1.0", "x-amz-target": `AmazonSQS.${action}` },
    body,
  });
  const { host: _, ...signed } = headers;
  return fetch(url, { method: "POST", headers: signed, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
}
