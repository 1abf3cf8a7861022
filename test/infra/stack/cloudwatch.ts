/** Evaluates metric filters, metrics and alarms as CloudWatch does, for what happened in a local service within one period. */
import * as z from "zod/mini";
import type { LogLine } from "../../../infra/local/options.ts";
import { at, type Fields, listed, type Template, target } from "../template.ts";

export interface Observed {
  readonly lines: readonly LogLine[];
  /** The statuses of the API's answers. */
  readonly statuses: readonly number[];
  /** For each function's file, the number of calls that Lambda would refuse, because they exceed the reserved concurrency. */
  readonly refused: Readonly<Record<string, number>>;
  /** For each function's file, the age in milliseconds of the stream record with which the function started last. */
  readonly recordAges: Readonly<Record<string, number>>;
  /** For each queue's logical id, the number of visible messages, and the age in seconds of the oldest message. */
  readonly queues: Readonly<Record<string, { readonly visible: number; readonly oldestSeconds?: number }>>;
}

/** The value of a metric in one period. Undefined means that CloudWatch has no data for this period. */
type Value = number | undefined;

const AlarmRule = z.looseObject({
  Threshold: z.number(),
  ComparisonOperator: z.enum(["GreaterThanThreshold", "LessThanThreshold"]),
  TreatMissingData: z.enum(["breaching", "notBreaching"]),
});

/** Returns true if the alarm is on when its metric has this value in each period. */
export function isOn(alarm: Fields, value: Value): boolean {
  const { ComparisonOperator, Threshold, TreatMissingData } = AlarmRule.parse(alarm);
  if (value === undefined) return TreatMissingData === "breaching";
  return ComparisonOperator === "GreaterThanThreshold" ? value > Threshold : value < Threshold;
}

/** The name of an alarm is the anchor of its runbook section, followed by its metric if several alarms share the section. */
export function alarmsByName(alarms: readonly Fields[]): ReadonlyMap<string, Fields> {
  const anchorOf = ({ AlarmDescription }: Fields) => /#([a-z-]+)$/.exec(String(AlarmDescription))?.[1] ?? "";
  const named = [...Map.groupBy(alarms, anchorOf)].flatMap(([anchor, own]) =>
    own.map((alarm) => [own.length === 1 ? anchor : `${anchor} ${String(alarm.MetricName)}`, alarm] as const),
  );
  const byName = new Map(named);
  if (byName.size < alarms.length) throw new Error("two alarms have the same section and the same metric");
  return byName;
}

export function metricOf(template: Template, alarm: Fields, observed: Observed): Value {
  const { Namespace, MetricName, Dimensions } = alarm;
  const dimension = target(at(listed(Dimensions)[0], "Value"));
  switch (Namespace) {
    case "AWS/Lambda":
      return ofLambda(String(MetricName), String(template.resources[dimension ?? ""]?.Metadata.file), observed);
    case "AWS/ApiGateway":
      if (MetricName !== "5XXError") break;
      return countOf(observed.statuses, (status) => status >= 500);
    case "AWS/SQS": {
      const queue = observed.queues[dimension ?? ""];
      return MetricName === "ApproximateAgeOfOldestMessage" ? queue?.oldestSeconds : queue?.visible;
    }
    case "AWS/Events":
      return observed.lines.filter(({ file }) => file === dimension).length || undefined;
    default:
      return ofFilters(template, alarm, observed.lines);
  }
  throw new Error(`this test does not know the metric ${String(MetricName)}`);
}

/** Returns how many of the values match. Undefined if there are no values. */
const countOf = <T>(values: readonly T[], isMatch: (value: T) => boolean): Value =>
  values.length === 0 ? undefined : values.filter(isMatch).length;

function ofLambda(metric: string, file: string, { lines, refused, recordAges }: Observed): Value {
  const reports = lines.filter((line) => line.file === file && selected(line.text, "$.type") === "platform.report");
  switch (metric) {
    case "Invocations":
      return reports.length || undefined;
    case "Errors":
      return countOf(reports, ({ text }) => selected(text, "$.record.status") !== "success");
    case "Throttles":
      return refused[file];
    case "IteratorAge":
      return recordAges[file];
    default:
      throw new Error(`this test does not know the metric ${metric}`);
  }
}

/** Applies the template's metric filters to the lines of their log groups. */
function ofFilters(template: Template, { MetricName, Statistic }: Fields, lines: readonly LogLine[]): Value {
  const values = template.all("AWS::Logs::MetricFilter").flatMap(({ properties }) => {
    const transformation = listed(properties.MetricTransformations)[0];
    if (at(transformation, "MetricName") !== MetricName) return [];
    const value = String(at(transformation, "MetricValue"));
    const group = lines.filter((line) => line.group === target(properties.LogGroupName));
    return group
      .filter(({ text }) => matches(String(properties.FilterPattern), text))
      .map(({ text }) => (value === "1" ? 1 : Number(selected(text, value))));
  });
  if (values.length === 0) return undefined;
  return Statistic === "Sum" ? values.reduce((total, value) => total + value, 0) : Math.max(...values);
}

/** Matches `$.a.b = "text"`, but no text with `*`, because CloudWatch would treat `*` as a wildcard. */
const COMPARISON = /^(\$(?:\.\w+)+) = "([^"\\*]*)"$/;

/** Returns true if the line matches the filter pattern, which must have the form `{ $.a = "x" }` or `{ ($.a = "x") || ($.b = "y") }`. */
export function matches(pattern: string, line: string): boolean {
  const inside = /^\{ (.+) \}$/.exec(pattern)?.[1] ?? "";
  const comparisons = inside.startsWith("(") ? inside.slice(1, -1).split(") || (") : [inside];
  return comparisons.some((comparison) => {
    const [, selector = "", wanted] = COMPARISON.exec(comparison) ?? [];
    if (wanted === undefined) throw new Error(`the pattern ${pattern} is not understood`);
    return selected(line, selector) === wanted;
  });
}

/** Returns the value at the selector, for example `$.a.b`, or undefined if the line has no such value or is not JSON. */
export function selected(line: string, selector: string): unknown {
  return at(jsonOf(line), ...selector.split(".").slice(1));
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
