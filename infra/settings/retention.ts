/** The retention times that an operator may choose. Others are constants, for example `deliveryKeptMs` in `shared/limits.ts`. */
import * as z from "zod/mini";
import type { Preset } from "./capacity.ts";

export interface Retention {
  readonly logDays: number;
  readonly importFileDays: number;
  readonly recoveryDays: number;
}

export const standardRetention: Retention = { logDays: 90, importFileDays: 30, recoveryDays: 35 };

/** The retention times in days that CloudWatch Logs accepts, up to five years. */
export const LOG_DAYS: readonly number[] = [
  ...[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1_096, 1_827],
];

/** Minimum days for the files of imports. An import whose message was in a dead-letter queue for 14 days still needs its file. */
export const LEAST_IMPORT_FILE_DAYS = 15;

export interface BackupPlan {
  /** Days for which a daily copy is kept. 0 means that no daily copies are made. */
  readonly dailyDays: number;
  /** Days for which a monthly copy is kept. 0 means that no monthly copies are made. */
  readonly monthlyDays: number;
}

/** Days after which a monthly copy moves to cold storage. */
export const COLD_AFTER_DAYS = 30;
/** Minimum days for monthly copies, because AWS Backup requires at least 90 days in cold storage. */
export const LEAST_MONTHLY_DAYS = COLD_AFTER_DAYS + 90;
/** Minimum days for daily copies, because AWS recommends keeping them for at least a week. */
export const LEAST_DAILY_DAYS = 7;

const defaults: Readonly<Record<Preset, BackupPlan>> = {
  small: { dailyDays: 0, monthlyDays: 0 },
  production: { dailyDays: 7, monthlyDays: 365 },
};

interface Choice {
  readonly preset: Preset;
  readonly backupDailyDays?: number | undefined;
  readonly backupMonthlyDays?: number | undefined;
}

export function backupPlanOf({ preset, backupDailyDays, backupMonthlyDays }: Choice): BackupPlan | undefined {
  const { dailyDays, monthlyDays } = defaults[preset];
  const plan = { dailyDays: backupDailyDays ?? dailyDays, monthlyDays: backupMonthlyDays ?? monthlyDays };
  return plan.dailyDays + plan.monthlyDays === 0 ? undefined : plan;
}

/** The output `Retention` of the service stack. `npm run company` computes with it how long copies of an erased company remain. */
const DeployedRetention = z.object({
  logDays: z.int(),
  recoveryDays: z.int(),
  /** Days for which AWS Backup keeps its longest-lived copy. 0 without such copies. */
  backupDays: z.int(),
});
export type DeployedRetention = z.infer<typeof DeployedRetention>;

export function retentionOutput({ logDays, recoveryDays }: Retention, plan: BackupPlan | undefined): string {
  const backupDays = Math.max(plan?.dailyDays ?? 0, plan?.monthlyDays ?? 0);
  return JSON.stringify({ logDays, recoveryDays, backupDays } satisfies DeployedRetention);
}

export const readRetention = (output: string): DeployedRetention => DeployedRetention.parse(JSON.parse(output));
