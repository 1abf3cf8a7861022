/** Estimates the daily cost of a deployment with metric math of CloudWatch. */
import { type IMetric, MathExpression, type Metric } from "aws-cdk-lib/aws-cloudwatch";
import { Duration } from "aws-cdk-lib/core";
import { prices } from "../settings/prices.ts";

const DAY = Duration.days(1);

export interface Usage {
  readonly requests: Metric;
  readonly readUnits: readonly Metric[];
  readonly writeUnits: readonly Metric[];
  readonly invocations: Metric;
  /** The sum of the durations of all functions, in milliseconds. */
  readonly durations: Metric;
  /** The memory of most functions, in GB. */
  readonly usualGb: number;
  /** Functions with a different amount of memory: durations in milliseconds, and memory in GB. */
  readonly others: readonly { readonly durations: Metric; readonly gb: number }[];
  readonly logBytes: readonly Metric[];
  readonly messages: Metric;
}

/** `dollars` is the price of one unit. */
type Priced = readonly [usage: Metric, dollars: number];

const GB = 1_000_000_000;
const gbMillisecond = prices.lambda.gbSecond / 1_000;

/** Requests for one message: send, receive and delete. One request can handle ten messages, so the estimate is an upper bound. */
const CALLS_FOR_MESSAGE = 3;

/** Returns one metric for each AWS service, without storage and data transfer. */
export function dollarsPerDay(usage: Usage): IMetric[] {
  const each = (metrics: readonly Metric[], dollars: number): Priced[] => metrics.map((metric) => [metric, dollars]);
  const services: Record<string, Priced[]> = {
    "API Gateway": [[usage.requests, prices.apiGateway.request]],
    "table reads": each(usage.readUnits, prices.dynamoDb.readUnit),
    "table writes": each(usage.writeUnits, prices.dynamoDb.writeUnit),
    Lambda: [
      [usage.invocations, prices.lambda.request],
      [usage.durations, usage.usualGb * gbMillisecond],
      // Add the difference to the usual memory, because the entry above prices all durations with the usual memory.
      ...usage.others.map(({ durations, gb }): Priced => [durations, (gb - usage.usualGb) * gbMillisecond]),
    ],
    logs: each(usage.logBytes, prices.cloudWatch.logGb / GB),
    SQS: [[usage.messages, CALLS_FOR_MESSAGE * prices.sqs.request]],
  };
  return Object.entries(services).map(([label, priced], service) => sum(label, `s${service}`, priced));
}

function sum(label: string, prefix: string, priced: readonly Priced[]): IMetric {
  const named = priced.map(([metric, dollars], i) => ({ id: `${prefix}m${i}`, metric, dollars }));
  return new MathExpression({
    label,
    period: DAY,
    // Without FILL, a missing value would make the whole sum empty.
    expression: named.map(({ id, dollars }) => `FILL(${id}, 0) * ${decimal(dollars)}`).join(" + "),
    usingMetrics: Object.fromEntries(
      named.map(({ id, metric }) => [id, metric.with({ statistic: "Sum", period: DAY })]),
    ),
  });
}

/** Writes a number without an exponent, because the documentation of metric math does not allow exponents. */
const decimal = (value: number): string => value.toFixed(15).replace(/0+$/, "");
