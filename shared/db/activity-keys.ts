/** Keys of the rows that count a company's activity: what its users have done, and when. */
import { type Key, padded } from "#shared/db/keys.ts";

const logPartition = (companyId: number): string => `C#${companyId}#FL`;
const dayPartition = (companyId: number): string => `C#${companyId}#FD`;

/** The log of facts that the sums of days do not contain yet. One Query reads the facts first and the state row (`factState`) last. */
export const factLog = (companyId: number): { pk: string } => ({ pk: logPartition(companyId) });
/** Facts that were appended to the log when the head row of the company's search index got the version `version`. */
export const loggedFacts = (companyId: number, version: number, part: number): Key => ({
  pk: logPartition(companyId),
  sk: `A#${padded(version)}#${String(part).padStart(3, "0")}`,
});
/** The state row of the log. It says which facts of the log the sums of days already contain. */
export const factState = (companyId: number): Key => ({ pk: logPartition(companyId), sk: "STATE" });

/** All rows of a company's days: the sums and the single facts of each day. */
export const allDays = (companyId: number): { pk: string } => ({ pk: dayPartition(companyId) });

/** The sums of the days from `first` to `last`, both included. A day is `YYYY-MM-DD`, UTC. */
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
/** The single facts of the days from `first` to `last`, both included. */
export const dayFacts = (companyId: number, first: string, last: string) => ({
  pk: dayPartition(companyId),
  from: `F#${first}`,
  upTo: `F#${last}$`,
});
/** Single facts of one day that were added to the sums in the same step. */
export const factsOfDay = (companyId: number, day: string, version: number, part: number): Key => ({
  pk: dayPartition(companyId),
  sk: `F#${day}#${padded(version)}#${String(part).padStart(3, "0")}`,
});
