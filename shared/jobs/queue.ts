/** The queues of work on files: S3 tells the one of imports of uploads, the service itself both of work that goes on. */
import * as z from "zod/mini";
import { awsCall } from "#shared/aws/json-call.ts";
import { setting } from "#shared/config.ts";
import { Id } from "#shared/schema.ts";

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

/** Nothing is read or connected before the first message. One may be sent twice, which its receiver expects. */
export function openJobQueues(): JobQueue {
  const sqs = awsCall("sqs");
  async function call(kind: JobMessage["kind"], action: string, fields: object): Promise<void> {
    await sqs(action, { QueueUrl: setting(settings[kind]), ...fields });
  }
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
