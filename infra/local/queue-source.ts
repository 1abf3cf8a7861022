/** An event source on a queue: receives messages, hands them to a function, fair to message groups, and deletes those that it has dealt with. */
import * as z from "zod/mini";
import { failedItems } from "./batch-failures.ts";
import { messageOf } from "./error.ts";
import { FairLine, type InLine } from "./fair-line.ts";
import type { LocalFunction } from "./function.ts";
import { nameOfArn, queueUrl, REGION } from "./names.ts";
import { GROUP_ATTRIBUTE, type QueueServer } from "./queues.ts";
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
/** The longest that SQS keeps a message from others. */
const KEPT_SECONDS = 43_200;

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
const Visibility = z.object({ Attributes: z.object({ VisibilityTimeout: z.string() }) });
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

interface Waiting extends InLine {
  readonly message: Message;
  /** Received before there was room for it: the queue does not hand it out again while it stands in line. */
  readonly isKept: boolean;
}

class Loop {
  readonly #source: QueueSource;
  readonly #url: string;
  readonly #stopping = new AbortController();
  readonly #inWork = new Set<Promise<void>>();
  readonly #line = new FairLine<Waiting>();
  readonly #size: number;
  readonly #windowMs: number;
  #visibilitySeconds = 0;

  constructor(source: QueueSource) {
    this.#source = source;
    this.#url = queueUrl(source.queues.endpoint, nameOfArn(source.mapping.EventSourceArn));
    this.#size = source.mapping.BatchSize ?? DEFAULT_BATCH_SIZE;
    this.#windowMs = source.mapping.MaximumBatchingWindowInSeconds * 1000;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Goes on receiving while everything is in work: fair is only who sees all that waits. */
  async run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (this.#visibilitySeconds === 0) this.#visibilitySeconds = await this.#readVisibility();
        const isKept = this.#free() <= this.#line.size;
        const messages = await this.#receive(isKept);
        const sinceMs = Date.now();
        for (const message of messages) {
          const group = message.MessageAttributes[GROUP_ATTRIBUTE]?.StringValue ?? "";
          this.#line.push({ group, sinceMs, message, isKept });
        }
        this.#dispatch();
      } catch (error) {
        if (signal.aborted) break;
        this.#source.log(`${this.#source.mapping.id}: the queue cannot be read: ${messageOf(error)}\n`);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    await Promise.all(this.#inWork);
  }

  /** Messages for which there is room in functions. */
  #free(): number {
    return (this.#source.concurrency - this.#inWork.size) * this.#size;
  }

  /** Full batches, and what has come when the batching window ends. */
  #dispatch(): void {
    while (!this.#stopping.signal.aborted && this.#line.size > 0 && this.#inWork.size < this.#source.concurrency) {
      const openMs = this.#line.oldestMs + this.#windowMs - Date.now();
      if (this.#line.size < this.#size && openMs > 0) {
        setTimeout(() => this.#dispatch(), openMs).unref();
        return;
      }
      const batch = Array.from({ length: Math.min(this.#size, this.#line.size) }, () => this.#line.take());
      this.#start(batch.filter((entry) => entry !== undefined));
    }
  }

  #start(batch: readonly Waiting[]): void {
    const work = this.#work(batch).finally(() => {
      this.#inWork.delete(work);
      for (const entry of batch) this.#line.done(entry);
      this.#dispatch();
    });
    this.#inWork.add(work);
  }

  async #work(batch: readonly Waiting[]): Promise<void> {
    const { mapping, log } = this.#source;
    const VisibilityTimeout = this.#visibilitySeconds;
    try {
      const kept = batch.filter(({ isKept }) => isKept).map(({ message }) => message);
      await this.#forEach("ChangeMessageVisibilityBatch", kept, { VisibilityTimeout });
    } catch (error) {
      log(`${mapping.id}: a batch could not begin: ${messageOf(error)}\n`);
      return;
    }
    await this.#process(batch.map(({ message }) => message));
  }

  async #readVisibility(): Promise<number> {
    const asked = { QueueUrl: this.#url, AttributeNames: ["VisibilityTimeout"] };
    const { Attributes } = z.parse(Visibility, await this.#source.queues.sqs("GetQueueAttributes", asked));
    return Number(Attributes.VisibilityTimeout);
  }

  async #receive(isKept: boolean): Promise<Message[]> {
    const request = {
      QueueUrl: this.#url,
      MaxNumberOfMessages: isKept ? RECEIVE_LIMIT : Math.min(this.#free(), RECEIVE_LIMIT),
      WaitTimeSeconds: WAIT_SECONDS,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
      ...(isKept && { VisibilityTimeout: KEPT_SECONDS }),
    };
    return z.parse(Received, await this.#source.queues.sqs("ReceiveMessage", request, this.#stopping.signal)).Messages;
  }

  /** In calls of ten. An entry that fails is a message that is gone. */
  async #forEach(operation: string, messages: readonly Message[], settings: object): Promise<void> {
    for (let from = 0; from < messages.length; from += RECEIVE_LIMIT) {
      const some = messages.slice(from, from + RECEIVE_LIMIT);
      const Entries = some.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle, ...settings }));
      await this.#source.queues.sqs(operation, { QueueUrl: this.#url, Entries });
    }
  }

  /** A message that is not deleted comes back when its visibility timeout ends; after enough of that it is a dead letter. */
  async #process(messages: readonly Message[]): Promise<void> {
    const { mapping, target, log } = this.#source;
    try {
      const payload = await target.invoke({
        Records: messages.map((message) => eventRecord(message, mapping.EventSourceArn)),
      });
      const reports = mapping.FunctionResponseTypes.length > 0;
      const failed = reports ? failedItems(payload, new Set(messages.map(({ MessageId }) => MessageId))) : new Set();
      if (failed === "all") return;
      const done = messages.filter(({ MessageId }) => !failed.has(MessageId));
      await this.#forEach("DeleteMessageBatch", done, {});
    } catch (error) {
      log(`${mapping.id}: a batch failed and will come back: ${messageOf(error)}\n`);
    }
  }
}

/** The message as Lambda passes it on. */
function eventRecord(message: Message, eventSourceARN: string): object {
  const { [GROUP_ATTRIBUTE]: group, ...own } = message.MessageAttributes;
  const attributes = Object.entries(own).map(([name, value]) => [
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
    attributes: { ...message.Attributes, ...(group !== undefined && { MessageGroupId: group.StringValue }) },
    messageAttributes: Object.fromEntries(attributes),
    md5OfBody: message.MD5OfBody,
    eventSource: "aws:sqs",
    eventSourceARN,
    awsRegion: REGION,
  };
}
