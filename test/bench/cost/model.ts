/** Converts a simulated working day to dollars a month. */
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { FLUSH_WINDOW_SECONDS } from "../../../infra/settings/capacity.ts";
import { backupPlanOf, COLD_AFTER_DAYS } from "../../../infra/settings/retention.ts";
import { mix, operations as requests } from "../../load/arrivals.ts";
import * as assumed from "./assumptions.ts";
import type { Measured, Usage } from "./measured.ts";
import { prices } from "./prices.ts";
import { type Day, type Deployment, type Scenario, simulate } from "./working-day.ts";

export const costLines = [
  "API Gateway",
  "table writes",
  "table reads",
  "Lambda",
  "data out",
  "logs",
  "storage",
  "alarms, keys and polls",
] as const;
type CostLine = (typeof costLines)[number];

export interface Cost {
  readonly scenario: Scenario;
  readonly preset: Deployment["preset"];
  readonly lines: Readonly<Record<CostLine, number>>;
  readonly total: number;
  /** The sum of `total` and the costs of backups, the web ACL and the scheduled smoke test. */
  readonly withDefaults: number;
}

const GB = 2 ** 30;
/**
 * Bytes that CloudWatch adds to each line that it stores
 * (https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html).
 */
const LINE_OVERHEAD = 26;
/** Milliseconds of one invocation of a background function, including its requests to the table. */
const PUBLISH_MS = 4;
const FLUSH_MS = 60;

export function costOf(scenario: Scenario, deployment: Deployment, measured: Measured): Cost {
  const day = simulate(scenario, deployment, measured);
  const hours = scenario.reps * assumed.HOURS_A_DAY * assumed.DAYS_A_MONTH;
  const authorizations = (day.functions.get("authorize")?.requests ?? Number.NaN) * assumed.DAYS_A_MONTH;
  const sum = (of: (usage: Usage) => number): number =>
    requests.reduce((total, name) => total + hours * mix[name] * of(measured.operations[name]), 0);
  const sent = sum(() => 1);
  const writes = hours * (mix.patch + mix.create);
  const unchanged = hours * mix.pins * unchangedShare(scenario, measured);
  const saved = unchanged * (measured.operations.pins.sentBytes - measured.notModifiedBytes);
  const sentBytes = sum((usage) => usage.sentBytes) - saved;
  const logged = sum(({ accessLogBytes }) => accessLogBytes + LINE_OVERHEAD);
  const storedGb = (scenario.companies * scenario.prospects * measured.storedBytes) / GB;
  const signIns = authorizations * measured.operations.authorize.readUnits;
  const readUnits = sum((usage) => usage.readUnits) + signIns + day.loadUnits * assumed.DAYS_A_MONTH;
  const { apiGateway, dynamoDb, dataTransfer, cloudWatch } = prices;
  const lines: Record<CostLine, number> = {
    "API Gateway": sent * apiGateway.request,
    "table writes": (sum(({ writeUnits }) => writeUnits) + writes * assumed.FLUSH_WRITE_UNITS) * dynamoDb.writeUnit,
    "table reads": readUnits * dynamoDb.readUnit,
    Lambda: lambdaDollars(day, deployment, writes),
    "data out": (sentBytes / GB) * dataTransfer.outGb,
    logs: (logged / GB) * cloudWatch.logGb,
    storage: storedGb * (dynamoDb.gbMonth + dynamoDb.pointInTimeGbMonth),
    "alarms, keys and polls": fixedDollars(measured.resources),
  };
  const total = costLines.reduce((dollars, line) => dollars + lines[line], 0);
  const withDefaults = total + defaultDollars(deployment.preset, sent, storedGb);
  return { scenario, preset: deployment.preset, lines, total, withDefaults };
}

/** Returns the share of map views that are answered with 304, if views and changes arrive independently of each other. */
function unchangedShare({ reps, companies, prospects }: Scenario, { pinsInView }: Measured): number {
  const writes = mix.patch + mix.create;
  const ofOthers = (reps / companies - 1) * writes * Math.min(1, pinsInView / prospects);
  return (assumed.SAME_VIEW * mix.pins) / (mix.pins + writes + ofOthers);
}

/** Returns dollars a month for Lambda. The stream starts `events/publish` for each write, `index/flush` at most once a batching window. */
function lambdaDollars({ functions }: Day, { memoryMb }: Deployment, writes: number): number {
  const { lambda } = prices;
  const run = (file: string, count: number, ms: number): number =>
    count * (lambda.request + (ms / 1_000) * (memoryMb(file) / 1_024) * lambda.gbSecond);
  const windows = (assumed.DAYS_A_MONTH * assumed.HOURS_A_DAY * 3_600) / FLUSH_WINDOW_SECONDS;
  let dollars = run("events/publish", writes, PUBLISH_MS) + run("index/flush", writes / FLUSH_ENTRIES, FLUSH_MS);
  dollars += run("index/flush", Math.min(writes, windows), 0);
  for (const { requests, gbSeconds } of functions.values()) {
    dollars += assumed.DAYS_A_MONTH * (requests * lambda.request + gbSeconds * lambda.gbSecond);
  }
  return dollars;
}

const fixedDollars = ({ alarms, metrics, dashboards, keys, queues }: Measured["resources"]): number =>
  alarms * prices.cloudWatch.alarmMonth +
  metrics * prices.cloudWatch.metricMonth +
  dashboards * prices.cloudWatch.dashboardMonth +
  keys * prices.kms.keyMonth +
  queues * assumed.IDLE_POLLS_A_MONTH * prices.sqs.request;

function defaultDollars(preset: Deployment["preset"], requests: number, storedGb: number): number {
  if (preset === "small") return 0;
  const { waf, cloudWatch } = prices;
  const { webAclRules, backupAlarms, backupMetrics, smokeTestDollars } = assumed.PRODUCTION_DEFAULTS;
  const alarms = backupAlarms * cloudWatch.alarmMonth + backupMetrics * cloudWatch.metricMonth;
  const webAcl = waf.aclMonth + webAclRules * waf.ruleMonth + requests * waf.request;
  return storedGb * copiesOfAGb(preset) + alarms + webAcl + smokeTestDollars;
}

/**
 * Returns the dollars a month for all backup copies of one GB, at the time when the first monthly copy expires. The number of copies grows
 * until then.
 */
function copiesOfAGb(preset: Deployment["preset"]): number {
  const plan = backupPlanOf({ preset });
  if (plan === undefined) return 0;
  const cold = Math.max(0, Math.floor(plan.monthlyDays / COLD_AFTER_DAYS) - 1);
  const warm = plan.dailyDays + (plan.monthlyDays > 0 ? 1 : 0);
  return warm * prices.dynamoDb.backupGbMonth + cold * prices.dynamoDb.backupColdGbMonth;
}
