/** Decides for how long AWS Backup stores copies of the table. */
import type { Preset } from "./capacity.ts";

export interface BackupPlan {
  /** Number of days after which a daily copy is deleted. 0 means that no daily copies are created. */
  readonly dailyDays: number;
  /** Number of days after which a monthly copy is deleted. 0 means that no monthly copies are created. */
  readonly monthlyDays: number;
}

/** Number of days after which a monthly copy moves to cold storage. */
export const COLD_AFTER_DAYS = 30;
/** Minimum number of days that AWS Backup requires for a copy in cold storage. */
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
    throw new Error(`context key backupDailyDays: must be 0 or at least ${WEEK}`);
  }
  if (plan.monthlyDays !== 0 && plan.monthlyDays < COLD_AFTER_DAYS + COLD_DAYS) {
    throw new Error(`context key backupMonthlyDays: must be 0 or at least ${COLD_AFTER_DAYS + COLD_DAYS}`);
  }
  return plan.dailyDays + plan.monthlyDays === 0 ? undefined : plan;
}
