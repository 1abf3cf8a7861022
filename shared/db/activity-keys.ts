/** Keys of the rows that count a company's activity: what its users have done, and when. */
import { type Key, padded } from "#shared/db/keys.ts";

const logPartition = (companyId: number): string => `C#${companyId}#FL`;
const dayPartition = (companyId: number): string => `C#${companyId}#FD`;

/**
 * The log of facts (things that users have done) that are not yet in the sums of days. One Query reads the facts first and the state row
 * (`factState`) last.
 */
export const factLog = (companyId: number): { pk: string } => ({ pk: logPartition(companyId) });
/**
 * A row of facts (things that users have done) in the log. The transaction that wrote the row increased the version of the head row of the
 * company's search index to `version`.
 */
export const loggedFacts = (companyId: number, version: number, part: number): Key => ({
  pk: logPartition(companyId),
  sk: `A#${padded(version)}#${String(part).padStart(3, "0")}`,
});
/** The state row of the log. It says which facts (things that users have done) the sums of days already contain. */
export const factState = (companyId: number): Key => ({ pk: logPartition(companyId), sk: "STATE" });

/**
 * All rows with the daily activity of a company. For each day, they contain sums, and the single facts (things that users have done) from
 * which the sums were computed.
 */
export const allDays = (companyId: number): { pk: string } => ({ pk: dayPartition(companyId) });

/** The range of keys of the sums of the days from `first` to `last`, both included. A day is `YYYY-MM-DD`, UTC. */
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
/** The single facts (things that users have done) of the days from `first` to `last`, both included. */
export const dayFacts = (companyId: number, first: string, last: string) => ({
  pk: dayPartition(companyId),
  from: `F#${first}`,
  upTo: `F#${last}$`,
});
/**
 * A row with single facts (things that users have done) of one day. The transaction that wrote the row also added these facts to the sums
 * of the day, and increased the version of the head row of the company's search index to `version`.
 */
export const factsOfDay = (companyId: number, day: string, version: number, part: number): Key => ({
  pk: dayPartition(companyId),
  sk: `F#${day}#${padded(version)}#${String(part).padStart(3, "0")}`,
});
