/** An event source on a queue: receives messages, hands them to a function and deletes those that it has dealt with. */
import * as z from "zod/mini";
import { failedItems } from "./batch-failures.ts";
import { messageOf } from "./error.ts";
import type { LocalFunction } from "./function.ts";
import { nameOfArn, queueUrl, REGION } from "./names.ts";
import type { QueueServer } from "./queues.ts";
import type { RunningSource } from "./sources.ts";
import type { Stack } from "./stack.ts";

export interface QueueSource {
  readonly mapping: Stack["eventSources"][number];
  readonly target: LocalFunction;
  readonly queues: QueueServer;
  /** Invocations at once. */
  readonly concurrency: number;
  readonly log: (text: string) => void;
}

const DEFAULT_BATCH_SIZE = 10;
/** SQS hands out at most 10 messages at once and lets a receiver wait at most 20 s. */
const RECEIVE_LIMIT = 10;
const WAIT_SECONDS = 20;
const RETRY_MS = 1_000;

const Message = z.object({
  MessageId: z.string(),
  ReceiptHandle: z.string(),
  MD5OfBody: z.string(),
  Body: z.string(),
  Attributes: z._default(z.record(z.string(), z.string()), {}),
  MessageAttributes: z._default(
    z.record(
      z.string(),
      z.object({ DataType: z.string(), StringValue: z.optional(z.string()), BinaryValue: z.optional(z.string()) }),
    ),
    {},
  ),
});
type Message = z.infer<typeof Message>;
const Received = z.object({ Messages: z._default(z.array(Message), []) });

export function startQueueSource(source: QueueSource): RunningSource {
  const loop = new Loop(source);
  const running = loop.run();
  return {
    kick: () => undefined,
    async stop() {
      loop.stop();
      await running;
    },
  };
}

class Loop {
  readonly #source: QueueSource;
  readonly #url: string;
  readonly #stopping = new AbortController();
  readonly #inWork = new Set<Promise<void>>();

  constructor(source: QueueSource) {
    this.#source = source;
    this.#url = queueUrl(source.queues.endpoint, nameOfArn(source.mapping.EventSourceArn));
  }

  stop(): void {
    this.#stopping.abort();
  }

  async run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (this.#inWork.size >= this.#source.concurrency) await Promise.race(this.#inWork);
        const messages = await this.#receiveBatch();
        if (messages.length > 0) this.#start(messages);
      } catch (error) {
        if (signal.aborted) break;
        this.#source.log(`${this.#source.mapping.id}: the queue cannot be read: ${messageOf(error)}\n`);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    await Promise.all(this.#inWork);
  }

  #start(messages: readonly Message[]): void {
    const work = this.#process(messages).finally(() => this.#inWork.delete(work));
    this.#inWork.add(work);
  }

  /** A full batch, or what has come when the batching window ends. */
  async #receiveBatch(): Promise<Message[]> {
    const size = this.#source.mapping.BatchSize ?? DEFAULT_BATCH_SIZE;
    const windowMs = this.#source.mapping.MaximumBatchingWindowInSeconds * 1000;
    const messages = await this.#receive(size, WAIT_SECONDS);
    const deadline = Date.now() + windowMs;
    while (messages.length > 0 && messages.length < size && Date.now() < deadline) {
      messages.push(...(await this.#receive(size - messages.length, Math.floor((deadline - Date.now()) / 1000))));
    }
    return messages;
  }

  async #receive(count: number, WaitTimeSeconds: number): Promise<Message[]> {
    const request = {
      QueueUrl: this.#url,
      MaxNumberOfMessages: Math.min(count, RECEIVE_LIMIT),
      WaitTimeSeconds,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
    };
    return z.parse(Received, await this.#source.queues.sqs("ReceiveMessage", request, this.#stopping.signal)).Messages;
  }

  /** A message that is not deleted comes back when its visibility timeout ends; after enough of that it is a dead letter. */
  async #process(messages: readonly Message[]): Promise<void> {
    const { mapping, target, queues, log } = this.#source;
    try {
      const payload = await target.invoke({
        Records: messages.map((message) => eventRecord(message, mapping.EventSourceArn)),
      });
      const reports = mapping.FunctionResponseTypes.length > 0;
      const failed = reports ? failedItems(payload, new Set(messages.map(({ MessageId }) => MessageId))) : new Set();
      if (failed === "all") return;
      const done = messages.filter(({ MessageId }) => !failed.has(MessageId));
      await Promise.all(
        done.map(({ ReceiptHandle }) => queues.sqs("DeleteMessage", { QueueUrl: this.#url, ReceiptHandle })),
      );
    } catch (error) {
      log(`${mapping.id}: a batch failed and will come back: ${messageOf(error)}\n`);
    }
  }
}

/** The message as Lambda passes it on. */
function eventRecord(message: Message, eventSourceARN: string): object {
  const attributes = Object.entries(message.MessageAttributes).map(([name, value]) => [
    name,
    {
      dataType: value.DataType,
      ...(value.StringValue !== undefined && { stringValue: value.StringValue }),
      ...(value.BinaryValue !== undefined && { binaryValue: value.BinaryValue }),
      stringListValues: [],
      binaryListValues: [],
    },
  ]);
  return {
    messageId: message.MessageId,
    receiptHandle: message.ReceiptHandle,
    body: message.Body,
    attributes: message.Attributes,
    messageAttributes: Object.fromEntries(attributes),
    md5OfBody: message.MD5OfBody,
    eventSource: "aws:sqs",
    eventSourceARN,
    awsRegion: REGION,
  };
}
