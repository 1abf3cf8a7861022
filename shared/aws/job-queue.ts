/** The queues of work on files: S3 tells the one of imports of uploads, the service itself both of work that goes on. */
import { ChangeMessageVisibilityCommand, SendMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod/mini";
import { sqsClient } from "#shared/aws/sqs.ts";
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

/** Nothing is read or connected before the first message. A message may be sent twice, which its receiver expects. */
export function openJobQueues(open: () => SQSClient = sqsClient): JobQueue {
  let client: SQSClient | undefined;
  const sqs = (): SQSClient => {
    client ??= open();
    return client;
  };
  const urlOf = (kind: JobMessage["kind"]): string => setting(settings[kind]);
  return {
    send: async (message) => {
      const command = new SendMessageCommand({
        QueueUrl: urlOf(message.kind),
        MessageBody: JSON.stringify(message),
        MessageGroupId: String(message.companyId),
      });
      await sqs().send(command);
    },
    returnIn: async (kind, ReceiptHandle, VisibilityTimeout) => {
      const change = { QueueUrl: urlOf(kind), ReceiptHandle, VisibilityTimeout };
      await sqs().send(new ChangeMessageVisibilityCommand(change));
    },
  };
}
