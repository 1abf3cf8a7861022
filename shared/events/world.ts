/** The outside world of the event functions: the table, the clock, the delivery queue and receivers. */
import { setTimeout as wait } from "node:timers/promises";
import type { DynamoDBRecord } from "aws-lambda";
import { type Clock, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { type Exchange, type Post, post } from "#shared/deliveries/exchange.ts";
import { parkRecord } from "#shared/events/parking.ts";
import { type DeliveryQueue, deliveryQueue } from "#shared/queue.ts";
import { secretsOn } from "#shared/secrets/provider.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";

export interface EventWorld {
  readonly table: Table;
  readonly clock: Clock;
  /** Waits. */
  readonly rest: (ms: number) => Promise<void>;
  readonly queue: DeliveryQueue;
  readonly secrets: Pick<Secrets, "open">;
  /** Delays and retry gaps pass this many times faster. */
  readonly timeScale: number;
  /** Functions of the whole deployment that send at once, at most. */
  readonly senders: number;
  readonly post: (request: Post) => Promise<Exchange>;
  /** Puts a stream record that no try can publish where an operator finds it, with its data. */
  readonly park: (record: DynamoDBRecord, reason: string) => Promise<void>;
}

let made: EventWorld | undefined;

export function eventWorld(): EventWorld {
  if (made !== undefined) return made;
  const table = openTable(setting("TABLE_NAME"));
  made = {
    table,
    secrets: secretsOn(table),
    clock: systemClock,
    // Of a process that waits for nothing else, too: Lambda takes one that could end for one that has.
    rest: (ms) => wait(ms),
    queue: deliveryQueue(),
    timeScale: setting("TIME_SCALE"),
    get senders() {
      // Asked for by those that send alone: the others have no such setting.
      return setting("DELIVERY_SENDERS");
    },
    post: (request) => post(request, setting("WEBHOOK_URL_POLICY")),
    park: (record, reason) => parkRecord(setting("PARKED_RECORDS_URL"), record, reason),
  };
  return made;
}
