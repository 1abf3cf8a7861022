/** Evaluates alarms as CloudWatch does. The input is the metric's value in each period. */
import * as z from "zod/mini";
import type { Fields } from "../template.ts";

/** The value of a metric in one period. Undefined means that CloudWatch has no data for this period. */
export type Value = number | undefined;

export const AlarmRule = z.looseObject({
  Threshold: z.number(),
  ComparisonOperator: z.enum(["GreaterThanThreshold", "LessThanThreshold"]),
  EvaluationPeriods: z.int(),
  // Minimum number of evaluated periods that must breach the threshold. If this setting is missing, all evaluated periods must breach it.
  DatapointsToAlarm: z.optional(z.int()),
  TreatMissingData: z.enum(["breaching", "notBreaching"]),
});
export type AlarmRule = z.output<typeof AlarmRule>;

/**
 * If some of the evaluated periods have no data, CloudWatch also looks at this number of earlier periods. CloudWatch does not document the
 * number. Its example shows two: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
 */
const FURTHER_PERIODS = 2;

/** Returns true if the alarm is on after the periods with these values. */
function isOn(rule: AlarmRule, values: readonly Value[]): boolean {
  const { EvaluationPeriods: periods } = rule;
  const range = values.slice(-(periods + FURTHER_PERIODS));
  const real = range.filter((value) => value !== undefined);
  // If at least `EvaluationPeriods` periods in the range have data, CloudWatch ignores the periods without data.
  const evaluated = real.slice(-periods).map((value) => isBreaching(rule, value));
  const missing = Array.from({ length: periods - evaluated.length }, () => rule.TreatMissingData === "breaching");
  return [...missing, ...evaluated].filter(Boolean).length >= neededPeriods(rule);
}

/** Returns how many of the evaluated periods must breach the threshold to turn the alarm on. */
export const neededPeriods = ({ EvaluationPeriods, DatapointsToAlarm = EvaluationPeriods }: AlarmRule): number =>
  DatapointsToAlarm;

const isBreaching = ({ ComparisonOperator, Threshold }: AlarmRule, value: number): boolean =>
  ComparisonOperator === "GreaterThanThreshold" ? value > Threshold : value < Threshold;

/**
 * Returns how many periods with the value `faulty` turn the alarm on, after 30 periods with the value `normal`. Returns undefined if the
 * alarm stays off.
 */
export function periodsUntilOn(rule: AlarmRule, normal: Value, faulty: Value): number | undefined {
  const before = Array.from({ length: 30 }, () => normal);
  for (let count = 0; count <= rule.EvaluationPeriods + FURTHER_PERIODS; count++) {
    if (isOn(rule, [...before, ...Array.from({ length: count }, () => faulty)])) return count;
  }
  return undefined;
}

/**
 * Returns the alarms by their names. The name of an alarm is the anchor of its section in the runbook. If several alarms share a section,
 * the name also contains the metric of the alarm.
 */
export function alarmsByName(alarms: readonly Fields[]): ReadonlyMap<string, Fields> {
  const sections = Map.groupBy(
    alarms,
    ({ AlarmDescription }) => /#([a-z-]+)$/.exec(String(AlarmDescription))?.[1] ?? "",
  );
  const named = [...sections].flatMap(([anchor, own]) =>
    own.map((alarm) => [own.length === 1 ? anchor : `${anchor} ${String(alarm.MetricName)}`, alarm] as const),
  );
  const byName = new Map(named);
  if (byName.size < alarms.length) throw new Error("two alarms have the same section and the same metric");
  return byName;
}
