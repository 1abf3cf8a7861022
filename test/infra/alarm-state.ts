/** Evaluates alarms as CloudWatch does, from one value for each period. */
import * as z from "zod/mini";

/** The value of a metric in one period. Undefined means that CloudWatch has no data of the period. */
export type Value = number | undefined;

export const AlarmRule = z.looseObject({
  Threshold: z.number(),
  ComparisonOperator: z.enum(["GreaterThanThreshold", "LessThanThreshold"]),
  EvaluationPeriods: z.int(),
  // By default, all periods must be breaching.
  DatapointsToAlarm: z.optional(z.int()),
  TreatMissingData: z.enum(["breaching", "notBreaching"]),
});
export type AlarmRule = z.output<typeof AlarmRule>;

/**
 * CloudWatch looks at more periods than the alarm evaluates, if some have no data. It does not document how many more; its example shows
 * two: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
 */
const FURTHER_PERIODS = 2;

/** Returns whether the alarm is on after these periods. */
export function isOn(rule: AlarmRule, values: readonly Value[]): boolean {
  const { EvaluationPeriods: periods, DatapointsToAlarm: needed = periods } = rule;
  const range = values.slice(-(periods + FURTHER_PERIODS));
  const real = range.filter((value) => value !== undefined);
  // With enough data, the missing periods do not count.
  const evaluated = real.slice(-periods).map((value) => isBreaching(rule, value));
  const missing = Array.from({ length: periods - evaluated.length }, () => rule.TreatMissingData === "breaching");
  return [...missing, ...evaluated].filter(Boolean).length >= needed;
}

const isBreaching = ({ ComparisonOperator, Threshold }: AlarmRule, value: number): boolean =>
  ComparisonOperator === "GreaterThanThreshold" ? value > Threshold : value < Threshold;

/** Returns the number of periods of `faulty` values after which the alarm goes on, after a long time of `normal` values. */
export function periodsUntilOn(rule: AlarmRule, normal: Value, faulty: Value): number | undefined {
  const before = Array.from({ length: 30 }, () => normal);
  for (let count = 0; count <= rule.EvaluationPeriods + FURTHER_PERIODS; count++) {
    if (isOn(rule, [...before, ...Array.from({ length: count }, () => faulty)])) return count;
  }
  return undefined;
}
