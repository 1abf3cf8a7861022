/** The version of a company's registrations: each write that changes one of them raises it in the same transaction. */
import * as z from "zod/mini";
import type { Item } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";

export interface RegistrationsVersion {
  /** 0 where no write has raised it yet. */
  readonly number: number;
  /** Time of the last change, milliseconds since the epoch. */
  readonly changedAt: number;
}

const CountRow = z.object({
  registrationsVersion: z._default(z.int(), 0),
  registrationsChangedAt: z._default(z.int(), 0),
});

/** `row`: the count of the company's webhooks. A company that never had a webhook has none. */
export function registrationsVersionOf(row: Item | undefined): RegistrationsVersion {
  const { registrationsVersion: number, registrationsChangedAt: changedAt } = CountRow.parse(row ?? {});
  return { number, changedAt };
}

/**
 * Goes into the transaction of every write that adds, changes or removes registrations. `webhooks`: how many webhooks the same write adds.
 * They are counted in the same row, and a transaction can write a row only once.
 */
export const registrationsChange = (companyId: number, nowMs: number, webhooks?: 1 | -1) => ({
  update: keys.webhookCount(companyId),
  change: {
    set: { registrationsChangedAt: nowMs },
    add: { registrationsVersion: 1, ...(webhooks !== undefined && { webhooks }) },
  },
});
