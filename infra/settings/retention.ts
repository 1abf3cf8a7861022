/**
 * Defines the retention times that an operator may choose. The API's contract fixes all other retention times, such as the 30 days of
 * deliveries.
 */

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
 * operator then redrives it, the import needs its file.
 */
export const LEAST_IMPORT_FILE_DAYS = 15;
