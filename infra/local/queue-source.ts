/**
 * Implements the event source of a queue. It receives messages, passes them to a function, and deletes the processed messages. It is fair
 * to the message groups: a group with many messages does not delay the messages of other groups.
 */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
} from "@aws-sdk/client-sqs";
import { messageOf } from "../command/error.ts";
import { failedItems, type RunningSource } from "./event-source.ts";
import type { LocalFunction } from "./function.ts";
import { nameOfArn, queueUrl, REGION } from "./names.ts";
import { GROUP_ATTRIBUTE, type QueueServer } from "./sqs.ts";
import type { Stack } from "./stack.ts";

export interface QueueSource {
  readonly mapping: Stack["eventSources"][number];
  readonly target: LocalFunction;
  readonly queues: QueueServer;
  readonly concurrency: number;
  readonly log: (text: string) => void;
}

const DEFAULT_BATCH_SIZE = 10;
/** SQS's limits for one receive call: at most 10 messages, and at most 20 s of waiting. */
const RECEIVE_LIMIT = 10;
const WAIT_SECONDS = 20;
const RETRY_MS = 1_000;
/** SQS's maximum visibility timeout. */
const MAX_VISIBILITY_SECONDS = 43_200;

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

interface Queued {
  readonly group: string;
  readonly sinceMs: number;
}

interface QueuedMessage extends Queued {
  readonly message: Message;
  /**
   * True if the message was received while all invocations were busy. Such a message waits in this process, so it was received with the
   * maximum visibility timeout. With the queue's normal timeout, it could become visible again and be received a second time.
   */
  readonly isAhead: boolean;
}

class Loop {
  readonly #source: QueueSource;
  readonly #url: string;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #queue = new FairQueue<QueuedMessage>();
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

  /**
   * Receives messages until the source stops, even while all invocations are busy. Otherwise the messages of a large group could fill all
   * batches, and the source would not know that other groups have messages too.
   */
  async run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (this.#visibilitySeconds === 0) this.#visibilitySeconds = await this.#readVisibility();
        const isAhead = this.#free() <= this.#queue.size;
        const messages = await this.#receive(isAhead);
        const sinceMs = Date.now();
        for (const message of messages) {
          const group = message.MessageAttributes?.[GROUP_ATTRIBUTE]?.StringValue ?? "";
          this.#queue.push({ group, sinceMs, message, isAhead });
        }
        this.#dispatch();
      } catch (error) {
        if (signal.aborted) break;
        this.#source.log(`${this.#source.mapping.id}: the queue cannot be read: ${messageOf(error)}\n`);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    await Promise.all(this.#running);
  }

  #free(): number {
    return (this.#source.concurrency - this.#running.size) * this.#size;
  }

  /** Invokes the function for each full batch. A batch that is not full is passed to the function when the batching window has ended. */
  #dispatch(): void {
    while (!this.#stopping.signal.aborted && this.#queue.size > 0 && this.#running.size < this.#source.concurrency) {
      const openMs = this.#queue.oldestMs + this.#windowMs - Date.now();
      if (this.#queue.size < this.#size && openMs > 0) {
        setTimeout(() => this.#dispatch(), openMs).unref();
        return;
      }
      const batch = Array.from({ length: Math.min(this.#size, this.#queue.size) }, () => this.#queue.take());
      this.#start(batch.filter((entry) => entry !== undefined));
    }
  }

  #start(batch: readonly QueuedMessage[]): void {
    const work = this.#work(batch).finally(() => {
      this.#running.delete(work);
      for (const entry of batch) this.#queue.done(entry);
      this.#dispatch();
    });
    this.#running.add(work);
  }

  /**
   * Processes a batch and deletes the messages that succeed. A failed message becomes visible again after its visibility timeout, or moves
   * to the dead-letter queue.
   */
  async #work(batch: readonly QueuedMessage[]): Promise<void> {
    const { mapping, log } = this.#source;
    try {
      await this.#limitVisibility(batch.filter(({ isAhead }) => isAhead).map(({ message }) => message));
      await this.#process(batch.map(({ message }) => message));
    } catch (error) {
      log(`${mapping.id}: a batch failed and will come back: ${messageOf(error)}\n`);
    }
  }

  async #readVisibility(): Promise<number> {
    const command = new GetQueueAttributesCommand({ QueueUrl: this.#url, AttributeNames: ["VisibilityTimeout"] });
    return Number((await this.#source.queues.sqs.send(command)).Attributes?.VisibilityTimeout);
  }

  async #receive(isAhead: boolean): Promise<Message[]> {
    const command = new ReceiveMessageCommand({
      QueueUrl: this.#url,
      MaxNumberOfMessages: isAhead ? RECEIVE_LIMIT : Math.min(this.#free(), RECEIVE_LIMIT),
      WaitTimeSeconds: WAIT_SECONDS,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
      ...(isAhead && { VisibilityTimeout: MAX_VISIBILITY_SECONDS }),
    });
    const { signal: abortSignal } = this.#stopping;
    return (await this.#source.queues.sqs.send(command, { abortSignal })).Messages ?? [];
  }

  /**
   * Sets the queue's normal visibility timeout for messages whose processing begins. While these messages waited in this process, they had
   * the maximum visibility timeout.
   */
  async #limitVisibility(messages: readonly Message[]): Promise<void> {
    for (const some of chunks(messages)) {
      const Entries = some.map((entry) => ({ ...entry, VisibilityTimeout: this.#visibilitySeconds }));
      await this.#source.queues.sqs.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: this.#url, Entries }));
    }
  }

  async #process(messages: readonly Message[]): Promise<void> {
    const { mapping, target, queues } = this.#source;
    const payload = await target.invoke({
      Records: messages.map((message) => eventRecord(message, mapping.EventSourceArn)),
    });
    const reports = mapping.FunctionResponseTypes.length > 0;
    const known = new Set(messages.map(({ MessageId = "" }) => MessageId));
    const failed = reports ? failedItems(payload, known) : new Set<string>();
    if (failed === "all") return;
    for (const Entries of chunks(messages.filter(({ MessageId = "" }) => !failed.has(MessageId)))) {
      await queues.sqs.send(new DeleteMessageBatchCommand({ QueueUrl: this.#url, Entries }));
    }
  }
}

interface Entry {
  readonly Id: string;
  readonly ReceiptHandle: string | undefined;
}

/**
 * Yields the entries for batch calls to SQS, at most ten in one call. Such a call fails for a single entry only if the message no longer
 * exists, so the callers ignore failed entries.
 */
function* chunks(messages: readonly Message[]): Generator<Entry[]> {
  for (let from = 0; from < messages.length; from += RECEIVE_LIMIT) {
    const some = messages.slice(from, from + RECEIVE_LIMIT);
    yield some.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle }));
  }
}

function eventRecord(message: Message, eventSourceARN: string): object {
  const { [GROUP_ATTRIBUTE]: group, ...own } = message.MessageAttributes ?? {};
  const attributes = Object.entries(own).map(([name, { DataType, StringValue, BinaryValue }]) => [
    name,
    {
      dataType: DataType,
      ...(StringValue !== undefined && { stringValue: StringValue }),
      ...(BinaryValue !== undefined && { binaryValue: Buffer.from(BinaryValue).toString("base64") }),
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

/**
 * Orders messages as the fair queues of SQS do. The next message comes from the message group with the fewest messages in flight (being
 * processed).
 */
export class FairQueue<T extends Queued> {
  readonly #groups = new Map<string, T[]>();
  readonly #inWork = new Map<string, number>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get oldestMs(): number {
    return Math.min(...[...this.#groups.values()].map(([first]) => first?.sinceMs ?? Number.POSITIVE_INFINITY));
  }

  push(message: T): void {
    const group = this.#groups.get(message.group);
    if (group === undefined) this.#groups.set(message.group, [message]);
    else group.push(message);
    this.#size++;
  }

  /**
   * Returns the next message. The message counts as in flight until `done` is called with it. If several groups have equally few messages
   * in flight, the group whose first message has waited longest comes first.
   */
  take(): T | undefined {
    let best: T[] | undefined;
    for (const group of this.#groups.values()) {
      if (best === undefined || isBefore(this.#rank(group), this.#rank(best))) best = group;
    }
    const message = best?.shift();
    if (message === undefined) return undefined;
    if (best?.length === 0) this.#groups.delete(message.group);
    this.#size--;
    this.#inWork.set(message.group, (this.#inWork.get(message.group) ?? 0) + 1);
    return message;
  }

  done({ group }: T): void {
    const left = (this.#inWork.get(group) ?? 1) - 1;
    if (left === 0) this.#inWork.delete(group);
    else this.#inWork.set(group, left);
  }

  #rank([first]: readonly T[]): readonly [number, number] {
    return [this.#inWork.get(first?.group ?? "") ?? 0, first?.sinceMs ?? 0];
  }
}

const isBefore = (a: readonly [number, number], b: readonly [number, number]): boolean =>
  a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
