/** Evaluates alarms as CloudWatch does. The input is the metric's value. */
import * as z from "zod/mini";
import type { Fields } from "../template.ts";

/** The value of a metric in one period. Undefined means that CloudWatch has no data for this period. */
export type Value = number | undefined;

export const AlarmRule = z.looseObject({
  Threshold: z.number(),
  ComparisonOperator: z.enum(["GreaterThanThreshold", "LessThanThreshold"]),
  TreatMissingData: z.enum(["breaching", "notBreaching"]),
});
export type AlarmRule = z.output<typeof AlarmRule>;

/** Returns true if the alarm is on when each period has this value. */
export const isOn = ({ ComparisonOperator, Threshold, TreatMissingData }: AlarmRule, value: Value): boolean => {
  if (value === undefined) return TreatMissingData === "breaching";
  return ComparisonOperator === "GreaterThanThreshold" ? value > Threshold : value < Threshold;
};

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
