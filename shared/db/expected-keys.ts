/** Keys of the ledger of deliveries. */
import type { Key } from "#shared/db/keys.ts";

const partition = (companyId: number, day: string): string => `C#${companyId}#D#L#${day}`;

export const ledgerKeys = {
  /** Which deliveries had to be made of an event? Those of one day, UTC, in one partition. */
  entry: (companyId: number, day: string, eventId: string): Key => ({
    pk: partition(companyId, day),
    sk: `E#${eventId}`,
  }),
  /** Was the event to be fanned out, and is it? Among the entries of its day. */
  fanOut: (companyId: number, day: string, eventId: string): Key => ({
    pk: partition(companyId, day),
    sk: `F#${eventId}`,
  }),
  day: (companyId: number, day: string): { pk: string } => ({ pk: partition(companyId, day) }),
} as const;
