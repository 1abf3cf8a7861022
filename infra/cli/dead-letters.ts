/** Implements `npm run dead-letters`: counts the messages of the dead-letter queues, or processes them again. */
import { setTimeout as wait } from "node:timers/promises";
import type { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { GetQueueAttributesCommand, SendMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { openQueue, sqsClient } from "#shared/aws/sqs.ts";
import { systemClock } from "#shared/clock.ts";
import { flushStream, flushTypes } from "#shared/company-index/write/flush-stream.ts";
import type { EventContext } from "#shared/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";
import { publishedTypes } from "#shared/webhooks/events/row-events.ts";
import { streamsClient } from "./clients.ts";
import { command, exitCodes, runCommands, WrongUsage } from "./command/options.ts";
import { type Message, type Redrive, redrive } from "./redrive.ts";
import { streamRecords } from "./stream-records.ts";
import { chosenStack, stackInput, stackUsage, type TableInUse, tableInUse } from "./table-in-use.ts";

/**
 * `url` and `source` are outputs of the stack. `source` has the URL of the queue from which the messages came. A dead-letter queue without
 * `source` has messages that name stream records that the function `consumer` failed to process.
 */
const queues = {
  deliveries: { url: "DeliveriesDeadLettersUrl", source: "DeliveriesUrl" },
  imports: { url: "ImportsDeadLettersUrl", source: "ImportsUrl" },
  exports: { url: "ExportsDeadLettersUrl", source: "ExportsUrl" },
  "bulk-jobs": { url: "BulkJobsDeadLettersUrl", source: "BulkJobsUrl" },
  // The poison records. Operators use the older name `parked`.
  "parked-records": { url: "ParkedRecordsUrl", consumer: "events" },
  "unflushed-indexes": { url: "UnflushedIndexesUrl", consumer: "indexes" },
} as const;

const usage = `npm run dead-letters -- list
    prints the number of messages in each dead-letter queue
npm run dead-letters -- redrive QUEUE
    repeats the work of each message that the queue has at the start of the command
    a message that fails again stays in the queue, with the reason on stderr
    QUEUE is one of ${Object.keys(queues).join(", ")}
${stackUsage}
exit code 0: done, 1: some messages failed again or may remain, or any other error, 2: wrong usage`;

const Input = z.strictObject(stackInput);
type Input = z.output<typeof Input>;

async function open(input: Input) {
  const inUse = await tableInUse(chosenStack(input));
  const sqs = sqsClient(inUse.sqs);
  return { sqs, label: inUse.label, redrives: redrivesOf(inUse, sqs, streamsClient(inUse.dynamoDb)) };
}

async function list(input: Input): Promise<number> {
  const { sqs, redrives } = await open(input);
  for (const { name, url } of redrives) {
    console.log(`${name.padEnd(20)}${String(await countMessages(sqs, url)).padStart(9)}`);
  }
  return exitCodes.done;
}

async function redriveQueue(input: Input, queue: string): Promise<number> {
  if (!Object.hasOwn(queues, queue)) throw new WrongUsage(`${queue}: no queue has this name\nusage: ${usage}`);
  const { sqs, label, redrives } = await open(input);
  const one = redrives.find(({ name }) => name === queue);
  if (one === undefined) throw new Error(`${label} has no queue ${queue}`);
  const { done, failed, isComplete } = await redrive(sqs, one, Date.now());
  console.log(`${queue} on ${label}: ${done} done again, ${failed} failed`);
  if (!isComplete) console.error("the queue gets many new messages, so older ones may remain: run the command again");
  return failed === 0 && isComplete ? exitCodes.done : exitCodes.failed;
}

type StreamConsumer = (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse>;

/** Returns how messages are processed again. If they are about stream records, this process itself runs the code of the failed function. */
function redrivesOf({ outputs, table, label }: TableInUse, sqs: SQSClient, streams: DynamoDBStreamsClient): Redrive[] {
  const output = (name: string): string => {
    const value = outputs[name];
    if (typeof value === "string") return value;
    throw new Error(`${label} has no output ${name}, because it is of another release than this command`);
  };
  const publishing: EventContext = {
    table,
    secrets: { open: () => Promise.reject(new Error("publishing signs nothing")) },
    clock: systemClock,
    wait: (ms) => wait(ms),
    queue: openQueue(output("DeliveriesUrl"), sqs),
    timeScale: Number(output("TimeScale")),
    senders: 0,
    post: () => Promise.reject(new Error("publishing posts nothing")),
    savePoisonRecord: (_, reason) => Promise.reject(new Error(`the record cannot be published: ${reason}`)),
  };
  const consumers: Record<"events" | "indexes", StreamConsumer> = {
    events: publishStream(() => publishing),
    indexes: flushStream(() => ({ table, clock: systemClock })),
  };
  async function consume(consumer: "events" | "indexes", { Body }: Message): Promise<void> {
    const found = await streamRecords(streams, outputs.TableName, Body);
    // Nothing is lost: the record would only have started a flush of the company index, and the company's next write starts one, too.
    if (found === undefined && consumer === "indexes") return;
    if (found === undefined) {
      throw new Error("the stream no longer holds the change, so its webhooks cannot be sent");
    }
    const types: readonly unknown[] = consumer === "events" ? publishedTypes : flushTypes;
    const Records = found.filter(({ dynamodb }) => types.includes(dynamodb?.NewImage?.type?.S));
    const { batchItemFailures } = await consumers[consumer]({ Records });
    if (batchItemFailures.length > 0) throw new Error("the work failed again: see the log above");
  }
  return Object.entries(queues).map(([name, queue]) => {
    const work =
      "source" in queue ? sendBack(sqs, output(queue.source)) : (message: Message) => consume(queue.consumer, message);
    return { name, url: output(queue.url), work };
  });
}

const sendBack =
  (sqs: SQSClient, QueueUrl: string) =>
  async ({ Body, Attributes }: Message): Promise<void> => {
    const { MessageGroupId } = Attributes;
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: Body, MessageGroupId }));
  };

/** Returns SQS's estimate of the number of messages, with those that have just failed again and are not visible yet. */
async function countMessages(sqs: SQSClient, QueueUrl: string): Promise<number> {
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl,
      AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    }),
  );
  return Object.values(Attributes).reduce((sum, count) => sum + Number(count), 0);
}

await runCommands(usage, { list: command(Input, list), redrive: command(Input, redriveQueue, "QUEUE") });
