/** Converts a simulated working day to dollars per month. */
import { prices } from "../../../infra/settings/prices.ts";
import { backupPlanOf, COLD_AFTER_DAYS } from "../../../infra/settings/retention.ts";
import {
  DAYS_A_MONTH,
  HOURS_A_DAY,
  HOURS_A_MONTH,
  IDLE_POLLS_A_MONTH,
  PER_HOUR,
  POLLS_A_SECOND,
  PRODUCTION_DEFAULTS,
  WHOLE_CPU_MB,
} from "./assumptions.ts";
import type { Day, Scenario } from "./day.ts";
import type { Design } from "./design.ts";
import { functionOf, type Measured, type Operation, operations } from "./measured.ts";
import { simulate } from "./working-day.ts";

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
export type CostLine = (typeof costLines)[number];

export interface Cost {
  readonly scenario: Scenario;
  readonly preset: Design["preset"];
  readonly lines: Readonly<Record<CostLine, number>>;
  readonly total: number;
  /** The sum of `total` and the costs of the parts that the preset adds by default: backups, the web ACL and the scheduled smoke test. */
  readonly withDefaults: number;
  readonly requests: number;
  readonly day: Day;
}

const GB = 2 ** 30;
/**
 * Bytes that CloudWatch adds to each line that it stores
 * (https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html).
 */
const LINE_OVERHEAD = 26;
/**
 * Milliseconds of one invocation of a background function, including its requests to the table. `IDLE_FLUSH_MS` is for an invocation of the
 * flush function that flushes nothing.
 */
const PUBLISH_MS = 4;
const FLUSH_MS = 60;
const IDLE_FLUSH_MS = 2;
/** Number of invocations of the sweeper in a month. The sweeper is a function that runs every minute and looks for work that is due. */
const SWEEPS_A_MONTH = HOURS_A_MONTH * 60;
const SWEEP = { ms: 40, readUnits: 8, logBytes: 700 } as const;

export function costOf(scenario: Scenario, design: Design, measured: Measured): Cost {
  const day = simulate(scenario, design, measured);
  const hours = scenario.reps * HOURS_A_DAY * DAYS_A_MONTH;
  const authorizations = (day.functions.get("authorize")?.requests ?? 0) * DAYS_A_MONTH;
  const countOf = (operation: Operation): number =>
    operation === "authorize" ? authorizations : hours * PER_HOUR[operation];
  const sum = (of: (operation: Operation) => number): number =>
    operations.reduce((total, operation) => total + countOf(operation) * of(operation), 0);
  const requests = sum((operation) => (operation === "authorize" ? 0 : 1));
  const writes = countOf("patch") + countOf("create");
  const { background, notModified } = measured;
  const unchanged = day.notModified * DAYS_A_MONTH;
  const pins = measured.operations.pins;
  const stream = streamRuns(scenario, design, writes);
  const writeUnits = sum((operation) => measured.operations[operation].writeUnits) + writes * background.writeUnits;
  const readUnitsOf = (operation: Operation): number => {
    const all = measured.operations[operation].readUnits;
    if (operation !== "list" && operation !== "search") return all;
    const known = measured.inMemory[operation].readUnits;
    return known + day.unread[operation] * (all - known);
  };
  const readUnits =
    sum(readUnitsOf) + writes * background.readUnits + day.loadUnits * DAYS_A_MONTH + SWEEPS_A_MONTH * SWEEP.readUnits;
  const sentBytes =
    sum((operation) => (operation === "authorize" ? 0 : measured.operations[operation].sentBytes)) -
    unchanged * (pins.sentBytes - notModified.sentBytes);
  const logged =
    sum((operation) => {
      const { logBytes, logLines, accessLogBytes } = measured.operations[operation];
      const access = operation === "authorize" ? 0 : accessLogBytes + LINE_OVERHEAD;
      return logBytes + logLines * LINE_OVERHEAD + access;
    }) +
    stream.publishes * (background.publishBytes + background.publishLines * LINE_OVERHEAD) +
    stream.flushes * (background.flushBytes + background.flushLines * LINE_OVERHEAD) +
    SWEEPS_A_MONTH * SWEEP.logBytes;
  const stored = (scenario.companies * scenario.prospects * measured.storedBytes) / GB;
  const lines: Record<CostLine, number> = {
    "API Gateway": requests * prices.apiGateway.request,
    "table writes": writeUnits * prices.dynamoDb.writeUnit,
    "table reads": readUnits * prices.dynamoDb.readUnit,
    Lambda: lambdaDollars(day, design, stream) - savedDollars(unchanged, design, measured),
    "data out": (sentBytes / GB) * prices.dataTransfer.outGb,
    logs: (logged / GB) * (prices.cloudWatch.logGb + prices.cloudWatch.logGbMonth * KEPT_SHARE),
    storage: stored * (prices.dynamoDb.gbMonth + prices.dynamoDb.pointInTimeGbMonth),
    "alarms, keys and polls":
      measured.resources.alarms * prices.cloudWatch.alarmMonth +
      measured.resources.metrics * prices.cloudWatch.metricMonth +
      measured.resources.dashboards * prices.cloudWatch.dashboardMonth +
      measured.resources.keys * prices.kms.keyMonth +
      measured.resources.queues * IDLE_POLLS_A_MONTH * prices.sqs.request,
  };
  const total = costLines.reduce((dollars, line) => dollars + lines[line], 0);
  const { preset } = design;
  return {
    scenario,
    preset,
    lines,
    total,
    withDefaults: total + defaultDollars(design, requests, stored),
    requests,
    day,
  };
}

/**
 * Returns the dollars per month of the parts that a preset has by default and that `costLines` does not contain.
 *
 * @param stored GB of the table
 */
function defaultDollars({ preset }: Design, requests: number, stored: number): number {
  const { waf, cloudWatch } = prices;
  const { webAclRules, backupAlarms, backupMetrics, smokeTestDollars } = PRODUCTION_DEFAULTS;
  const alarms = backupAlarms * cloudWatch.alarmMonth + backupMetrics * cloudWatch.metricMonth;
  const webAcl = waf.aclMonth + webAclRules * waf.ruleMonth + requests * waf.request;
  return preset === "small" ? 0 : stored * copiesOfAGb(preset) + alarms + webAcl + smokeTestDollars;
}

/**
 * Returns the dollars per month of all backup copies of a table of one GB. The number of copies grows until the first monthly copy expires.
 * The function uses the number at this time.
 */
function copiesOfAGb(preset: Design["preset"]): number {
  const { dailyDays, monthlyDays } = backupPlanOf({ preset }) ?? {
    dailyDays: 0,
    monthlyDays: 0,
  };
  const cold = Math.max(0, Math.floor(monthlyDays / COLD_AFTER_DAYS) - 1);
  const warm = dailyDays + (monthlyDays > 0 ? 1 : 0);
  return warm * prices.dynamoDb.backupGbMonth + cold * prices.dynamoDb.backupColdGbMonth;
}

/**
 * Stored bytes of logs, as a multiple of the bytes that are written in a month. Logs are kept for three months, and compression reduces
 * them to about a seventh.
 */
const KEPT_SHARE = 3 / 7;

interface StreamRuns {
  readonly publishes: number;
  /** Number of all invocations of `index/flush`, and number of those invocations that flush an index. */
  readonly flushes: number;
  readonly flushed: number;
}

/**
 * Computes how often the table's stream starts functions. It starts `publish` at once. It starts `flush` after a batching window, so that
 * many writes share one invocation. Each function is started at most `POLLS_A_SECOND` times a second.
 */
function streamRuns({ reps }: Scenario, { flushEntries, flushWindowSeconds }: Design, writes: number): StreamRuns {
  const perSecond = (reps * (PER_HOUR.patch + PER_HOUR.create)) / 3_600;
  // Writes arrive independently of each other. A window of `seconds` contains at least one write with the probability `1 - exp(-perSecond *
  // seconds)`. `runsIn` returns the number of invocations per write.
  const runsIn = (seconds: number): number => (1 - Math.exp(-perSecond * seconds)) / (perSecond * seconds);
  return {
    publishes: writes * runsIn(1 / POLLS_A_SECOND),
    flushes: writes * runsIn(Math.max(1 / POLLS_A_SECOND, flushWindowSeconds)),
    flushed: writes / flushEntries,
  };
}

function lambdaDollars({ functions }: Day, design: Design, { publishes, flushes, flushed }: StreamRuns): number {
  const { lambda } = prices;
  let dollars = 0;
  for (const { requests, gbSeconds, provisionedGbSeconds } of functions.values()) {
    dollars +=
      DAYS_A_MONTH *
      (requests * lambda.request + gbSeconds * lambda.gbSecond + provisionedGbSeconds * lambda.gbSecondOnProvisioned);
  }
  for (const [file, count = 0] of Object.entries(design.provisioned)) {
    const gb = design.memoryMb(file) / 1_024;
    dollars += count * gb * HOURS_A_MONTH * 3_600 * lambda.provisionedGbSecond;
  }
  const run = (file: string, count: number, ms: number): number =>
    count * (lambda.request + (ms / 1_000) * (design.memoryMb(file) / 1_024) * lambda.gbSecond);
  return (
    dollars +
    run("events/publish", publishes, PUBLISH_MS) +
    run("index/flush", flushes, IDLE_FLUSH_MS) +
    run("index/flush", flushed, FLUSH_MS) +
    run("events/sweep", SWEEPS_A_MONTH, SWEEP.ms)
  );
}

/** Returns the dollars that the answers with 304 save. Such an answer has no body, so the function neither builds nor compresses one. */
function savedDollars(unchanged: number, design: Design, { operations, notModified }: Measured): number {
  const memoryMb = design.memoryMb(functionOf.pins);
  const savedMs = (operations.pins.cpuMs - notModified.cpuMs) / Math.min(1, memoryMb / WHOLE_CPU_MB);
  return unchanged * (savedMs / 1_000) * (memoryMb / 1_024) * prices.lambda.gbSecond;
}
