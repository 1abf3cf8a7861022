/** How long copies of an erased company's data remain, for the report of an erasure. */
import { iso } from "#shared/clock.ts";
import type { DeployedRetention } from "../../settings/retention.ts";

const DAY_MS = 86_400_000;

/** AWS keeps the last copy of a deleted table that had point-in-time recovery. */
const LAST_COPY_DAYS = 35;

/** When each kind of copy expires. */
export function remainsUntil(erasedAt: string, retention: DeployedRetention): Record<string, string> {
  const after = (days: number): string => iso(Date.parse(erasedAt) + days * DAY_MS);
  return {
    "point-in-time recovery of each table": after(retention.recoveryDays),
    "last copies of deleted restored tables": after(LAST_COPY_DAYS),
    "stream of the table": after(1),
    "parts of unfinished uploads": after(1),
    "dead-letter queues": after(14),
    "memory of running functions": after(1),
    "log lines, which have ids and no names": after(retention.logDays),
    "AWS Backup": backups(retention, after),
  };
}

/** AWS Backup sets the expiry of a copy when it makes the copy, so a later change of the settings does not matter. */
function backups(retention: DeployedRetention, after: (days: number) => string): string {
  const others = "copies made by hand, or under earlier settings, may remain longer";
  return retention.backupDays === 0
    ? `the plan makes no copies; ${others}`
    : `${after(retention.backupDays)}; ${others}`;
}
