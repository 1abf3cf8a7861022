/**
 * Defines the retention times that an operator may choose: for log lines, files of imports, point-in-time recovery and copies of AWS
 * Backup. Other retention times are constants in the code, for example `deliveryKeptMs` in `shared/limits.ts`.
 */
import * as z from "zod/mini";
import type { Preset } from "./capacity.ts";

export interface Retention {
  /** Days after which CloudWatch deletes log lines. */
  readonly logDays: number;
  /** Days after which S3 deletes the files and error reports of imports. */
  readonly importFileDays: number;
  /** Number of past days to which point-in-time recovery can restore the table. */
  readonly recoveryDays: number;
}

export const standardRetention: Retention = { logDays: 90, importFileDays: 30, recoveryDays: 35 };

/** The only values that CloudWatch Logs accepts, up to five years. */
export const LOG_DAYS: readonly number[] = [
  ...[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1_096, 1_827],
];

/**
 * Minimum number of days for the files of imports. The queue message of an import may stay in a dead-letter queue for 14 days. If an
 * operator then sends the message to the import queue again, the import needs its file.
 */
export const LEAST_IMPORT_FILE_DAYS = 15;

export interface BackupPlan {
  /** Number of days after which a daily copy is deleted. 0 means that no daily copies are created. */
  readonly dailyDays: number;
  /** Number of days after which a monthly copy is deleted. 0 means that no monthly copies are created. */
  readonly monthlyDays: number;
}

/** Number of days after which a monthly copy moves to cold storage. */
export const COLD_AFTER_DAYS = 30;
/** Minimum number of days for which a copy must stay in cold storage. AWS Backup requires this minimum. */
const COLD_DAYS = 90;
/** Minimum retention of daily copies in days. AWS recommends at least a week. */
const WEEK = 7;

const defaults: Readonly<Record<Preset, BackupPlan>> = {
  small: { dailyDays: 0, monthlyDays: 0 },
  production: { dailyDays: 7, monthlyDays: 365 },
};

interface Choice {
  readonly preset: Preset;
  readonly dailyDays: number | undefined;
  readonly monthlyDays: number | undefined;
}

/** Returns the plan, or undefined if no copies are created. Throws an error that contains the context key with the wrong value. */
export function backupPlanOf({ preset, dailyDays, monthlyDays }: Choice): BackupPlan | undefined {
  const plan = {
    dailyDays: dailyDays ?? defaults[preset].dailyDays,
    monthlyDays: monthlyDays ?? defaults[preset].monthlyDays,
  };
  if (plan.dailyDays !== 0 && plan.dailyDays < WEEK) {
    throw new Error(`context key backupDailyDays: must be 0 or at least ${WEEK}, and not ${plan.dailyDays}`);
  }
  if (plan.monthlyDays !== 0 && plan.monthlyDays < COLD_AFTER_DAYS + COLD_DAYS) {
    throw new Error(
      `context key backupMonthlyDays: must be 0 or at least ${COLD_AFTER_DAYS + COLD_DAYS}, and not ${plan.monthlyDays}`,
    );
  }
  return plan.dailyDays + plan.monthlyDays === 0 ? undefined : plan;
}

/**
 * The retention times of a deployment. The service stack has them as JSON in its output `Retention`. `npm run company` reads this output to
 * tell how long copies of an erased company remain.
 */
const DeployedRetention = z.object({
  logDays: z.int(),
  recoveryDays: z.int(),
  /** The longest time for which AWS Backup keeps a copy. It is 0 if the plan makes no copies. */
  backupDays: z.int(),
});
export type DeployedRetention = z.infer<typeof DeployedRetention>;

export function retentionOutput({ logDays, recoveryDays }: Retention, plan: BackupPlan | undefined): string {
  const backupDays = Math.max(plan?.dailyDays ?? 0, plan?.monthlyDays ?? 0);
  return JSON.stringify({ logDays, recoveryDays, backupDays } satisfies DeployedRetention);
}

/** Returns the retention times in the stack's output. Returns undefined if there is no output: stacks of older releases have none. */
export const readRetention = (output: string | undefined): DeployedRetention | undefined =>
  output === undefined ? undefined : DeployedRetention.parse(JSON.parse(output));
