/**
 * Computes the metrics of one period as CloudWatch and AWS would. The input is what happened in a local service in this period, for example
 * its log lines and the statuses of its answers.
 */
import * as z from "zod/mini";
import type { LogLine } from "../../../infra/local/options.ts";
import { at, type Fields, listed, type Template, target } from "../template.ts";
import type { Value } from "./alarm-state.ts";
import { jsonOf, matches, selected } from "./filter-pattern.ts";

/** What happened in one period. */
export interface Observed {
  readonly lines: readonly LogLine[];
  /** The statuses of the API's answers. */
  readonly statuses: readonly number[];
  /**
   * For each function's file, the number of calls that found no free environment. Lambda would refuse these calls if the function has
   * reserved concurrency.
   */
  readonly refused: Readonly<Record<string, number>>;
  /** For each function's file, the milliseconds from a change until the function started with the stream record of the change. */
  readonly recordAges: Readonly<Record<string, number>>;
  /** For each queue's logical id, the number of visible messages, and the age in seconds of the oldest message. */
  readonly queues: Readonly<Record<string, { readonly visible: number; readonly oldestSeconds?: number }>>;
}

const Report = z.object({
  time: z.string(),
  type: z.literal("platform.report"),
  record: z.object({ status: z.string(), metrics: z.object({ durationMs: z.number() }) }),
});

const reportsOf = (lines: readonly LogLine[]): z.output<typeof Report>[] =>
  lines.flatMap(({ text }) => {
    const report = z.safeParse(Report, jsonOf(text));
    return report.success ? [report.data] : [];
  });

/** The quota of concurrent executions of a new account. One machine can reach it. */
const QUOTA = 10;

/** Returns the value of the metric that the alarm watches, in the observed period. */
export function metricOf(template: Template, alarm: Fields, observed: Observed): Value {
  const { Namespace, MetricName, Dimensions, Metrics } = alarm;
  if (at(listed(Metrics)[0], "Expression") === "100 * running / SERVICE_QUOTA(running)") {
    return (100 * mostAtOnce(reportsOf(observed.lines))) / QUOTA;
  }
  const dimension = target(at(listed(Dimensions)[0], "Value"));
  switch (Namespace) {
    case "AWS/Lambda":
      return ofLambda(String(MetricName), fileOf(template, dimension), observed);
    case "AWS/ApiGateway":
      if (MetricName !== "5XXError") break;
      return observed.statuses.length === 0 ? undefined : observed.statuses.filter((status) => status >= 500).length;
    case "AWS/SQS": {
      const queue = observed.queues[dimension ?? ""];
      return MetricName === "ApproximateAgeOfOldestMessage" ? queue?.oldestSeconds : queue?.visible;
    }
    case "AWS/Events": {
      const logged = observed.lines.filter(({ file }) => file === dimension).length;
      return logged === 0 ? undefined : logged;
    }
    default:
      return ofFilters(template, alarm, observed.lines);
  }
  throw new Error(`this test does not know the metric ${String(MetricName)}`);
}

const fileOf = (template: Template, id = ""): string => String(template.resources[id]?.Metadata.file);

function ofLambda(metric: string, file: string, observed: Observed): Value {
  const reports = reportsOf(observed.lines.filter((line) => line.file === file));
  switch (metric) {
    case "Invocations":
      return reports.length === 0 ? undefined : reports.length;
    case "Errors":
      return reports.length === 0 ? undefined : reports.filter(({ record }) => record.status !== "success").length;
    case "Throttles":
      return reports.length === 0 ? undefined : (observed.refused[file] ?? 0);
    case "IteratorAge":
      return observed.recordAges[file];
    default:
      throw new Error(`this test does not know the metric ${metric}`);
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Returns the maximum number of invocations that ran at the same time. */
function mostAtOnce(reports: readonly z.output<typeof Report>[]): number {
  const changes = reports
    .flatMap(({ time, record }): [number, number][] => {
      const end = Date.parse(time);
      return [
        [end - record.metrics.durationMs, 1],
        [end, -1],
      ];
    })
    .toSorted(([a, begin], [b, other]) => a - b || begin - other);
  let running = 0;
  return Math.max(0, ...changes.map(([, change]) => (running += change)));
}

/**
 * Applies the metric filters of the template to the log lines, and returns the metric's value. A filter applies only to the lines of its
 * log group.
 */
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
  return Statistic === "Sum" ? sum(values) : Math.max(...values);
}
