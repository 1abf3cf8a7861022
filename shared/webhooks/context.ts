/** Opens the parts of the context that publishing and delivering need. */
import { setTimeout } from "node:timers/promises";
import { deliveryQueue } from "#shared/aws/queue.ts";
import { systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { EventContext } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { post } from "#shared/outbound/post.ts";
import { secretsOn } from "#shared/secrets/secrets.ts";
import { parkRecord } from "#shared/webhooks/poison-records.ts";

let made: EventContext | undefined;

export function eventContext(): EventContext {
  if (made !== undefined) return made;
  const table = openTable(setting("TABLE_NAME"));
  made = {
    table,
    secrets: secretsOn(table),
    clock: systemClock,
    // Keep the timer referenced: Lambda treats an empty event loop as finished.
    wait: (ms) => setTimeout(ms),
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
