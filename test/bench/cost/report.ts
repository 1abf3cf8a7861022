/** Writes docs/cost.md from the results of the cost model. */
import { PROVISIONED } from "../../../infra/settings/capacity.ts";
import { PRICES_DATE, PRICES_REGION, prices } from "../../../infra/settings/prices.ts";
import { sizeOf } from "../budget.ts";
import {
  DAYS_A_MONTH,
  HOURS_A_DAY,
  HOURS_A_MONTH,
  LISTED_PROSPECTS,
  LONG_FLUSH,
  PER_HOUR,
  PRODUCTION_DEFAULTS,
} from "./assumptions.ts";
import type { Scenario } from "./day.ts";
import { designOf } from "./design.ts";
import { CREATES } from "./index-costs.ts";
import type { Measured } from "./measured.ts";
import { type Cost, type CostLine, costLines, costOf } from "./model.ts";
import { table } from "./tables.ts";

/** The AWS pages that contain the prices below. Each key is also a key of `prices`. */
const PRICE_PAGES = {
  apiGateway: "https://aws.amazon.com/api-gateway/pricing/",
  lambda: "https://aws.amazon.com/lambda/pricing/",
  dynamoDb: "https://aws.amazon.com/dynamodb/pricing/on-demand/",
  s3: "https://aws.amazon.com/s3/pricing/",
  cloudWatch: "https://aws.amazon.com/cloudwatch/pricing/",
  dataTransfer: "https://aws.amazon.com/ec2/pricing/on-demand/",
  sqs: "https://aws.amazon.com/sqs/pricing/",
  kms: "https://aws.amazon.com/kms/pricing/",
  waf: "https://aws.amazon.com/waf/pricing/",
  cognito: "https://aws.amazon.com/cognito/pricing/",
  rds: "https://aws.amazon.com/rds/postgresql/pricing/",
  fargate: "https://aws.amazon.com/fargate/pricing/",
  loadBalancer: "https://aws.amazon.com/elasticloadbalancing/pricing/",
  openSearch: "https://aws.amazon.com/opensearch-service/pricing/",
} as const;

const REPS = [1, 50, 1_000] as const;
const PROSPECTS = [10_000, 100_000, 1_000_000] as const;

/** The scenarios with more than one company. */
const SEVERAL: readonly Scenario[] = [
  { reps: 1_000, companies: 200, prospects: 100_000 },
  { reps: 1_000, companies: 20, prospects: 1_000_000 },
];

const presetOf = ({ reps }: Scenario) => (reps > 50 ? ("production" as const) : ("small" as const));

/** A deployment that could use `small`, but has the parts that the preset `production` adds. */
const SMALL_PRODUCTION: Scenario = { reps: 50, companies: 1, prospects: 100_000 };

/** Simulates all scenarios of the report and returns their costs. This takes seconds. */
export function costsOf(measured: Measured): Cost[] {
  const grid = REPS.flatMap((reps) => PROSPECTS.map((prospects) => ({ reps, companies: 1, prospects })));
  return [
    ...[...grid, ...SEVERAL].map((scenario) => costOf(scenario, designOf(presetOf(scenario)), measured)),
    costOf(SMALL_PRODUCTION, designOf("production"), measured),
  ];
}

export function report(measured: Measured, costs = costsOf(measured)): string {
  const text = [
    `# What a deployment costs`,
    `\`npm run cost -- --write\` writes this page. On ${measured.date}, \`npm run cost -- --measure\` has measured how many units and bytes each operation
needs, for example a list or a change of a status. The model multiplies these amounts by the number of operations in a month, and by the
prices of ${PRICES_REGION} on ${PRICES_DATE} ([prices.ts](../infra/settings/prices.ts)). The free tiers of AWS are not deducted, and taxes are not
included. This command fails if the page differs from the output of the model:

\`\`\`sh
npm run cost -- --check
\`\`\``,
    `## Dollars a month`,
    table(
      ["reps", "companies", "prospects of each", "preset", ...costLines, "total", "with the preset's defaults"],
      costs.map(row),
    ),
    `The column *total* leaves out three parts that the preset \`production\` has by default, because a deployment can turn each of them off. The
last column contains them. The preset \`small\` has none of them:

- the [web ACL](security.md#web-acl): ${waf.aclMonth} dollars a month, ${waf.ruleMonth} dollar for each of its ${PRODUCTION_DEFAULTS.webAclRules} rules, and ${(waf.request * 1_000_000).toFixed(2)} dollars for a million requests
- the scheduled [smoke test](deploy.md#watch): about ${PRODUCTION_DEFAULTS.smokeTestDollars.toFixed(0)} dollars a month
- the [backups](keep.md#what-is-kept) with their two alarms`,
    dominant(costs),
    `## Comparison with other architectures`,
    beside(costs.find(({ scenario }) => scenario.companies > 1)),
    `## Assumptions`,
    assumptions(measured, costs),
    `## Measured operations`,
    operationTable(measured),
    flushNote(measured),
  ];
  return `${text.join("\n\n")}\n`;
}

const dollars = (amount: number): string => (amount < 10 ? amount.toFixed(2) : amount.toFixed(0));

const row = ({ scenario: { reps, companies, prospects }, preset, lines, total, withDefaults }: Cost): string[] => [
  String(reps),
  String(companies),
  sizeOf(prospects),
  preset,
  ...costLines.map((line) => dollars(lines[line])),
  `**${dollars(total)}**`,
  dollars(withDefaults),
];

const usersOf = ({ reps, companies }: Scenario): string =>
  `${reps} ${reps === 1 ? "rep" : "reps"} in ${companies} ${companies === 1 ? "company" : "companies"}`;

/** The scenarios with several companies or 100 000 prospects, each with the preset for its size. */
const shownOf = (costs: readonly Cost[]): Cost[] =>
  costs.filter(
    ({ scenario, preset }) =>
      preset === presetOf(scenario) && (scenario.companies > 1 || scenario.prospects === 100_000),
  );

/** Returns a text with the largest parts of the costs in each scenario with several companies or 100 000 prospects. */
function dominant(costs: readonly Cost[]): string {
  const shares = (cost: Cost): string => {
    const largest = costLines.toSorted((a, b) => cost.lines[b] - cost.lines[a]).slice(0, 3);
    const parts = largest.map((line: CostLine) => `${line} ${((100 * cost.lines[line]) / cost.total).toFixed(0)} %`);
    const each = cost.scenario.companies === 1 ? "" : " each";
    return `${usersOf(cost.scenario)} with ${sizeOf(cost.scenario.prospects)} prospects${each}: ${parts.join(", ")}`;
  };
  const shown = shownOf(costs);
  return `The three largest costs of some of these deployments, as shares of the total:\n\n${shown.map((cost) => `- ${shares(cost)}`).join("\n")}`;
}

function beside(ours: Cost | undefined): string {
  const { rds, fargate, loadBalancer, openSearch } = prices;
  const containers = 2 * (fargate.vcpuHour + 2 * fargate.gbHour) * HOURS_A_MONTH;
  const balancer = (loadBalancer.hour + loadBalancer.capacityUnitHour) * HOURS_A_MONTH;
  const database = (hour: number, gb: number): number => hour * HOURS_A_MONTH + gb * rds.gbMonth;
  const rows: [string, number][] = [
    [
      "RDS for PostgreSQL db.t4g.medium Multi-AZ with 50 GB, 2 containers of 1 vCPU and 2 GB, a load balancer",
      database(rds.mediumMultiAzHour, 50) + containers + balancer,
    ],
    ["the same with db.m7g.large and 200 GB", database(rds.largeMultiAzHour, 200) + containers + balancer],
    [
      "OpenSearch Serverless for the search alone: 2 compute units, the least with redundancy",
      2 * openSearch.computeUnitHour * HOURS_A_MONTH,
    ],
  ];
  const total =
    ours === undefined
      ? ""
      : `\n\nThis service costs ${dollars(ours.total)} dollars a month for 1 000 reps in 200 companies with 100 k prospects each. This amount includes requests, logs and data\nout, and the amounts in this table do not include them. If nobody sent requests, this service would cost only the amounts in the columns\n*storage* and *alarms, keys and polls* of the first table.`;
  return `${table(
    ["architecture", "dollars a month, before requests, logs and data out"],
    rows.map(([name, amount]) => [name, dollars(amount)]),
  )}${total}`;
}

function assumptions({ pinsInView }: Measured, costs: readonly Cost[]): string {
  const mix = Object.entries(PER_HOUR).map(([name, count]) => `${count} ${names[name] ?? name}`);
  return [
    `- A rep works ${HOURS_A_DAY} hours a day on ${DAYS_A_MONTH} days a month. In an hour, a rep sends these requests: ${mix.join(", ")}.`,
    `- A map view shows ${pinsInView} pins.`,
    `- Each rep has a working area with ${LISTED_PROSPECTS} prospects, and each list shows one page of them. Functions keep prospects in memory. A list reads only
  those of its prospects from the table that its function does not have in memory. ${inMemory(costs)}
  The prospects that a search finds are never in memory.`,
    `- A deployment with 50 reps or fewer can use the preset \`small\`. The last row shows the preset \`production\` for comparison.
- Lambda polls each queue with five connections, also when it is empty.`,
    `- The costs of cold starts and of loading search indexes come from a [simulation](../test/bench/cost/working-day.ts) of working days. Its parameters are
  in [assumptions.ts](../test/bench/cost/assumptions.ts).`,
    `- The costs of webhook deliveries, imports, exports and mail are not included.`,
    `- The costs of the users of the Cognito user pool (plan Essentials) are not included. Each user who signs in or refreshes a token in a month costs
  about ${cognito.activeUserMonth} dollars. The first ${cognito.freeUsers / 1_000} 000 users are free. This is the price for users who sign in at the user pool itself or with a social
  provider (<${PRICE_PAGES.cognito}>).`,
    `- The last column of the first table assumes a deployment without the console. With the console, the web ACL has one more rule. The column
  contains the copies of AWS Backup that exist when the first monthly copy expires.`,
    `- The setting \`warmEnvironments\` is not included. With the value 1, it costs ${dollars(warmDollars())} dollars a month in the preset \`production\`.`,
    `- The prices come from these pages: ${Object.values(PRICE_PAGES)
      .map((page) => `<${page}>`)
      .join(", ")}.`,
  ].join("\n");
}

/** Returns a sentence about the share of listed prospects in memory. It covers scenarios with several companies or 100 000 prospects. */
function inMemory(costs: readonly Cost[]): string {
  const shown = shownOf(costs);
  const parts = shown.map(
    ({ scenario, day }) => `${(100 * (1 - day.unread.list)).toFixed(0)} % with ${usersOf(scenario)}`,
  );
  return `The function has these shares of the listed prospects in memory: ${parts.join(", ")}.`;
}

/** Returns the dollars per month for one provisioned environment of each function in `PROVISIONED`. */
function warmDollars(): number {
  const { memoryMb } = designOf("production");
  const gb = PROVISIONED.reduce((sum, file) => sum + memoryMb(file) / 1_024, 0);
  return gb * HOURS_A_MONTH * 3_600 * prices.lambda.provisionedGbSecond;
}

const { waf, cognito } = prices;

/**
 * Returns a note about a cost that the model leaves out: the rare merges of large index parts during a flush. The note states their dollars
 * per month for the largest number of reps.
 */
function flushNote({ background }: Measured): string {
  const reps = Math.max(...REPS);
  const writes = reps * HOURS_A_DAY * DAYS_A_MONTH * (PER_HOUR.patch + PER_HOUR.create);
  const more = writes * (LONG_FLUSH.writeUnits - background.writeUnits) * prices.dynamoDb.writeUnit;
  return `The index flush was measured over ${CREATES} creates. Over ${LONG_FLUSH.creates} creates, which include rare merges of large parts of the index,
[the benchmark](benchmarks.md) has measured ${LONG_FLUSH.writeUnits} write units for each. ${reps} reps would then cost ${more.toFixed(2)} dollars a month more.`;
}

const names: Readonly<Record<string, string>> = {
  pins: "map views",
  patch: "changes of a status",
  detail: "reads of one prospect",
  list: "lists",
  search: "search",
  create: "creates",
};

function operationTable({ operations, background, notModified, inMemory }: Measured): string {
  const figure = (value: number): string => String(Number(value.toFixed(1)));
  const rows = Object.entries(operations).map(([name, usage]) => [
    names[name] ?? name,
    ...[
      usage.readUnits,
      usage.writeUnits,
      usage.rounds,
      usage.sentBytes,
      usage.logBytes,
      usage.logLines,
      usage.accessLogBytes,
      usage.cpuMs,
    ].map(figure),
  ]);
  const head = [
    "operation",
    "read units",
    "write units",
    "rounds",
    "bytes sent",
    "log bytes",
    "log lines",
    "access log bytes",
    "CPU ms",
  ];
  const known = (["list", "search"] as const).map((name) => [
    `${names[name] ?? name}, prospects in memory`,
    figure(inMemory[name].readUnits),
    "0",
    figure(inMemory[name].rounds),
    "",
    "",
    "",
    "",
    figure(inMemory[name].cpuMs),
  ]);
  const unchanged = [
    "map view, answered with 304",
    figure(notModified.readUnits),
    "0",
    figure(notModified.rounds),
    figure(notModified.sentBytes),
    "",
    "",
    "",
    figure(notModified.cpuMs),
  ];
  const flush = [
    "index flush, for each write",
    figure(background.readUnits),
    background.writeUnits.toFixed(2),
    "",
    "",
    "",
    "",
    "",
    "",
  ];
  return table(head, [...rows, ...known, unchanged, flush]);
}
