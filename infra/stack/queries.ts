/** The CloudWatch Logs Insights queries that a deployment saves for operators. */

type Source = "access" | "functions";

export interface LogQuery {
  readonly title: string;
  readonly source: Source;
  readonly query: readonly string[];
}

/** Reads `group` from the path: the first segment after `/api`, for example `prospects`. */
const ROUTE_GROUP = "parse resource /^\\/(?:api\\/)?(?<group>[^\\/]+)/";

const MOST = "sort lines desc";

const linesWithError = (name: string): string[] => [
  `filter message.error = "${name}" or message.cause = "${name}"`,
  "stats count(*) as lines by message.companyId",
  MOST,
];

export const logQueries = {
  latency: {
    title: "Latency by route group",
    source: "access",
    query: [
      ROUTE_GROUP,
      "stats count(*) as requests, pct(latencyMs, 50) as p50, pct(latencyMs, 99) as p99, max(latencyMs) as longest by group",
      "sort requests desc",
    ],
  },
  failed: {
    title: "Failed requests",
    source: "access",
    query: [
      "filter status >= 500 or status = 429",
      "stats count(*) as lines by method, resource, status, gatewayError",
      MOST,
    ],
  },
  attempts: {
    title: "Webhook attempts",
    source: "functions",
    query: ['filter message.event = "attempted"', "stats count(*) as lines by message.result", MOST],
  },
  errors: {
    title: "Errors",
    source: "functions",
    query: [
      // In lines of Lambda itself, `errorType` is the type of an uncaught error, and `record.status` shows a time-out.
      "fields coalesce(message.event, errorType, record.status) as what",
      'filter level = "ERROR" or (type = "platform.report" and record.status != "success")',
      "stats count(*) as lines by what, message.error, message.cause, message.companyId",
      MOST,
    ],
  },
  damaged: { title: "Damaged indexes", source: "functions", query: linesWithError("IndexUnreadable") },
  damagedActivity: { title: "Damaged activity", source: "functions", query: linesWithError("ActivityUnreadable") },
  waiting: {
    title: "Waiting webhooks",
    source: "functions",
    query: [
      'filter message.event = "company waiting"',
      "stats max(message.waiting) as lines by message.companyId",
      MOST,
    ],
  },
  missing: {
    title: "Missing deliveries",
    source: "functions",
    query: [
      'filter message.event = "delivery missing"',
      "fields @timestamp, message.companyId, message.webhookId, message.deliveryId",
    ],
  },
} as const satisfies Record<string, LogQuery>;
