/** Keys of the rows that count a company's activity: what its users have done, and when. */
import { type Key, padded } from "#shared/db/keys.ts";

const logPartition = (companyId: number): string => `C#${companyId}#FL`;
const dayPartition = (companyId: number): string => `C#${companyId}#FD`;

/** The facts that are not in the sums of days yet. One Query reads them, and reads the row that says which facts are in the sums last. */
export const factLog = (companyId: number): { pk: string } => ({ pk: logPartition(companyId) });
/** Facts that became part of the log when the head row of the company's search index got the version `version`. */
export const loggedFacts = (companyId: number, version: number, part: number): Key => ({
  pk: logPartition(companyId),
  sk: `A#${padded(version)}#${String(part).padStart(3, "0")}`,
});
/** The row that says which facts of the log are in the sums of days. */
export const factState = (companyId: number): Key => ({ pk: logPartition(companyId), sk: "STATE" });

/** All sums and single facts of days. */
export const allDays = (companyId: number): { pk: string } => ({ pk: dayPartition(companyId) });

/** The sums of the days from `first` to `last`, both included. A day is `YYYY-MM-DD`, UTC. */
export const daySums = (companyId: number, first: string, last: string) => ({
  pk: dayPartition(companyId),
  from: `S#${first}`,
  // `$` sorts directly after `#`, so the range includes all rows of the last day.
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
/** Facts of one day that came into the sums together. */
export const factsOfDay = (companyId: number, day: string, version: number, part: number): Key => ({
  pk: dayPartition(companyId),
  sk: `F#${day}#${padded(version)}#${String(part).padStart(3, "0")}`,
});
