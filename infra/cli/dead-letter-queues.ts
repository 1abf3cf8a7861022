/** Where failed work lies, and how each is done again: sent back to its queue, or handed to the work that the stream feeds. */
import { setTimeout as wait } from "node:timers/promises";
import type { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { SendMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { openQueue } from "#shared/aws/queue.ts";
import { systemClock } from "#shared/clock.ts";
import { DELTA_TYPE } from "#shared/company-index/delta.ts";
import { flushStream } from "#shared/company-index/write/flush.ts";
import type { EventContext } from "#shared/context.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";
import { publishedTypes } from "#shared/webhooks/events/row-events.ts";
import type { Message } from "./redrive.ts";
import { streamRecords } from "./stream-records.ts";
import type { TableInUse } from "./table-in-use.ts";

/** The outputs that name the dead letters and where they came from; what the stream fed has no queue to go back to. */
export const stations = {
  deliveries: { url: "DeliveriesDeadLettersUrl", source: "DeliveriesUrl" },
  imports: { url: "ImportsDeadLettersUrl", source: "ImportsUrl" },
  exports: { url: "ExportsDeadLettersUrl", source: "ExportsUrl" },
  "parked-records": { url: "ParkedRecordsUrl", feeds: "events" },
  "unflushed-indexes": { url: "UnflushedIndexesUrl", feeds: "indexes" },
} as const;

type StreamWork = (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse>;

export interface Redoing {
  readonly name: string;
  readonly url: string;
  readonly work: (message: Message) => Promise<void>;
}

/** By the names of the stations. */
export function redoings(
  inUse: TableInUse,
  sqs: SQSClient,
  streams: DynamoDBStreamsClient,
): Readonly<Record<string, Redoing>> {
  const { outputs, table } = inUse;
  const output = (name: string): string => z.parse(z.string(), outputs[name]);
  const publishing: EventContext = {
    table,
    secrets: { open: () => Promise.reject(new Error("the deliverer signs")) },
    clock: systemClock,
    wait: (ms) => wait(ms),
    queue: openQueue(output("DeliveriesUrl"), sqs),
    timeScale: Number(output("TimeScale")),
    senders: 0,
    post: () => Promise.reject(new Error("the deliverer posts")),
    park: (_, reason) => Promise.reject(new Error(`it cannot be published: ${reason}`)),
  };
  const works: Record<"events" | "indexes", StreamWork> = {
    events: publishStream(() => publishing),
    indexes: flushStream(() => ({ table, clock: systemClock })),
  };
  async function feed(feeds: "events" | "indexes", { Body }: Message): Promise<void> {
    const found = await streamRecords(streams, output("TableName"), Body);
    // What a flush missed is in the table: the company's next writes bring it along.
    if (found === undefined && feeds === "indexes") return;
    if (found === undefined)
      throw new Error("the stream has forgotten the change: its webhooks cannot be sent any more");
    const types: readonly string[] = feeds === "events" ? publishedTypes : [DELTA_TYPE];
    const Records = found.filter(({ dynamodb }) => types.includes(dynamodb?.NewImage?.type?.S ?? ""));
    const { batchItemFailures } = await works[feeds]({ Records });
    if (batchItemFailures.length > 0) throw new Error("it failed again; the log above says why");
  }
  return Object.fromEntries(
    Object.entries(stations).map(([name, station]) => {
      const work =
        "source" in station
          ? sendBack(sqs, output(station.source))
          : (message: Message) => feed(station.feeds, message);
      return [name, { name, url: output(station.url), work }];
    }),
  );
}

const sendBack =
  (sqs: SQSClient, QueueUrl: string) =>
  async ({ Body, Attributes }: Message): Promise<void> => {
    const { MessageGroupId } = Attributes;
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: Body, MessageGroupId }));
  };
