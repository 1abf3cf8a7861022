/** The queue of work on files: S3 tells it of uploads, the service itself of work that goes on. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { setting } from "#shared/config.ts";
import { Id } from "#shared/schema.ts";
import { regionInUse, signerOf } from "#shared/signing.ts";

/** Says that there is something to be done: what it is stands in the table. */
export const JobMessage = z.object({ kind: z.enum(["import", "export"]), companyId: Id, id: Id });
export type JobMessage = z.infer<typeof JobMessage>;

export interface JobQueue {
  send(message: JobMessage): Promise<void>;
  /** Lets a received message come back after so many seconds. */
  returnIn(receiptHandle: string, seconds: number): Promise<void>;
}

const TRIES = 3;
const TIMEOUT_MS = 3_000;

/** Nothing is read or connected before the first message. */
export function openJobQueue(): JobQueue {
  const call = (action: string, fields: object): Promise<void> =>
    untilAnswered(action, JSON.stringify({ QueueUrl: setting("JOB_QUEUE_URL"), ...fields }));
  return {
    send: (message) =>
      call("SendMessage", { MessageBody: JSON.stringify(message), MessageGroupId: String(message.companyId) }),
    returnIn: (ReceiptHandle, VisibilityTimeout) =>
      call("ChangeMessageVisibility", { ReceiptHandle, VisibilityTimeout }),
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
