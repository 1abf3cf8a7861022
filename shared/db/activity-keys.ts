/** Keys of the rows that count a company's activity. */
import { type Key, padded } from "#shared/db/keys.ts";

const logPartition = (companyId: number): string => `C#${companyId}#FL`;
const dayPartition = (companyId: number): string => `C#${companyId}#FD`;

/** The facts that are not yet in the sums of days. One Query reads the facts first and the state row (`factState`) last. */
export const factLog = (companyId: number): { pk: string } => ({ pk: logPartition(companyId) });
/** Facts in the log. The transaction that stored them increased the version of the index's head to `version`. */
export const loggedFacts = (companyId: number, version: number, part: number): Key => ({
  pk: logPartition(companyId),
  sk: `A#${padded(version)}#${String(part).padStart(3, "0")}`,
});
export const factState = (companyId: number): Key => ({ pk: logPartition(companyId), sk: "STATE" });

export const allDays = (companyId: number): { pk: string } => ({ pk: dayPartition(companyId) });

/** The sums of the days from `first` to `last` (`YYYY-MM-DD`, UTC), both included. */
export const daySums = (companyId: number, first: string, last: string) => ({
  pk: dayPartition(companyId),
  from: `S#${first}`,
  // `$` sorts directly after `#`, so the range includes all rows of the day `last`.
  upTo: `S#${last}$`,
});
export const daySum = (companyId: number, day: string, part: number): Key => ({
  pk: dayPartition(companyId),
  sk: `S#${day}#${String(part).padStart(3, "0")}`,
});
export const dayFacts = (companyId: number, first: string, last: string) => ({
  pk: dayPartition(companyId),
  from: `F#${first}`,
  upTo: `F#${last}$`,
});
/** Single facts of one day, which the sums of the day contain. `version` is as in `loggedFacts`. */
export const factsOfDay = (companyId: number, day: string, version: number, part: number): Key => ({
  pk: dayPartition(companyId),
  sk: `F#${day}#${padded(version)}#${String(part).padStart(3, "0")}`,
});
