/** Keys of events with many deliveries: which of them are still to be made, and what they have in common. */
import type { Key } from "#shared/db/keys.ts";

const partition = (companyId: number): string => `C#${companyId}#D#F`;

export const fanOutKeys = {
  /** Of which events are deliveries still to be made? Oldest first. */
  waiting: (companyId: number): { pk: string; begins: string } => ({ pk: partition(companyId), begins: "E#" }),
  fanOut: (companyId: number, createdAt: string, eventId: string): Key => ({
    pk: partition(companyId),
    sk: `E#${createdAt}#${eventId}`,
  }),
  /** Who makes them at present, and how far is the oldest event? */
  progress: (companyId: number): Key => ({ pk: partition(companyId), sk: "PROGRESS" }),
  /** Whose event is it that has such a row? */
  companyAt: ({ pk, sk }: Key): number | undefined => {
    const [, companyId] = /^C#(\d+)#D#F$/.exec(pk) ?? [];
    return companyId === undefined || !sk.startsWith("E#") ? undefined : Number(companyId);
  },
  /** What is the data of an event, where its deliveries do not hold it themselves? */
  eventData: (companyId: number, eventId: string): Key => ({ pk: `C#${companyId}#D#E#${eventId}`, sk: "DATA" }),
} as const;
