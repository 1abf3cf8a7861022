/**
 * Tests the cost model: docs/cost.md and docs/latency.md contain its current tables, the monthly costs stay below their limits, and a
 * simulated day is reproducible and plausible.
 */
import { expect, test } from "vitest";
import { at } from "#shared/at.ts";
import { readConfig } from "../../infra/settings/config.ts";
import { prices } from "../../infra/settings/prices.ts";
import { sized } from "../harness/tier.ts";
import { listed, synthesized, withBackups } from "../infra/template.ts";
import { PRODUCTION_DEFAULTS } from "./cost/assumptions.ts";
import { readMeasured } from "./cost/measured.ts";
import { costLines } from "./cost/model.ts";
import { monthlyResources } from "./cost/monthly-resources.ts";
import { costsOf, costTables, latencyTables, REPS } from "./cost/tables.ts";
import { deploymentOf, simulate } from "./cost/working-day.ts";
import { readPage, withTables } from "./written-page.ts";

const COMMAND = "npm run cost -- --write";
const measured = readMeasured();
const deployment = deploymentOf("production");
const costs = costsOf(measured);
const few = { reps: 50, companies: 1, prospects: 100_000 };

test("docs/cost.md has the tables of `npm run cost -- --write`", () => {
  const page = readPage("cost.md");
  expect(page).toBe(withTables(page, COMMAND, costTables(measured, costs)));
});

test("docs/latency.md has the tables of `npm run cost -- --write`", { tags: "sized" }, () => {
  // The short test leaves out the days with a thousand reps, because their simulation takes ten seconds. A change of the simulation still
  // makes a test fail: it alters the days with fewer reps, or the costs of a thousand reps in docs/cost.md, which the test above compares.
  const reps = sized({ short: REPS.filter((count) => count < 1_000), wide: [...REPS] });
  const left = REPS.filter((count) => !reps.includes(count));
  const rowsOf = (text: string): string[] =>
    text.split("\n").filter((line) => line.startsWith("|") && !left.some((count) => line.startsWith(`| ${count} `)));
  expect(rowsOf(readPage("latency.md"))).toEqual(rowsOf(latencyTables(measured, reps)));
});

const costFor = (companies: number, prospects: number) =>
  at(
    costs.filter(
      ({ scenario }) => scenario.reps === 1_000 && scenario.companies === companies && scenario.prospects === prospects,
    ),
    0,
  );

test.each([
  [1, 100_000, 110],
  [200, 100_000, 130],
  [20, 1_000_000, 200],
])("1 000 reps in %d companies with %d prospects cost at most %d dollars a month", (companies, prospects, dollars) => {
  const { lines, total } = costFor(companies, prospects);
  expect(total).toBeLessThanOrEqual(dollars);
  expect(costLines.reduce((sum, line) => sum + lines[line], 0)).toBeCloseTo(total);
});

test("the fixed prices are those of the templates, and with the alarms of the backups one large company stays below 110 dollars", async () => {
  expect(measured.resources).toEqual(await monthlyResources());
  const { alarms, metrics } = await monthlyResources(withBackups);
  const { backupAlarms, backupMetrics, webAclRules } = PRODUCTION_DEFAULTS;
  expect([alarms - measured.resources.alarms, metrics - measured.resources.metrics]).toEqual([
    backupAlarms,
    backupMetrics,
  ]);
  const dollars = backupAlarms * prices.cloudWatch.alarmMonth + backupMetrics * prices.cloudWatch.metricMonth;
  expect(costFor(1, 100_000).total + dollars).toBeLessThanOrEqual(110);
  const template = await synthesized(readConfig({ preset: "production", alarmEmail: "operator@example.com" }));
  const [acl] = template.all("AWS::WAFv2::WebACL");
  expect(listed(acl?.properties.Rules)).toHaveLength(webAclRules);
});

test("with the defaults of the preset, a deployment also pays for the web ACL, the smoke test and the backups", () => {
  const large = costFor(1, 100_000);
  // The default parts cost this much in a month: 0.60 dollars for each million of the 15 million requests (web ACL), 10 dollars for the web
  // ACL with its rules, 2.05 for the smoke test, 0.50 for the alarms and the metric of the backups, and 1.13 for the copies of each GB.
  const requests = 0.6 * ((1_000 * 6 * 21 * 119) / 1_000_000);
  const copies = 1.13 * ((100_000 * measured.storedBytes) / 2 ** 30);
  expect(large.withDefaults - large.total).toBeCloseTo(requests + 10 + 2.05 + 0.5 + copies);
  for (const { preset, total, withDefaults } of costs) {
    if (preset === "small") expect(withDefaults, "the preset small has none of them").toBe(total);
  }
});

test("the smoke test or a provisioned environment leaves a lone rep hardly any start of lists", () => {
  const startsWith = (more: object): number | undefined =>
    simulate({ ...few, reps: 1 }, { ...deployment, ...more }, measured).functions.get("prospects/list")?.starts;
  expect(startsWith({})).toBeGreaterThan(5);
  expect(startsWith({ smokeTestMinutes: 5 })).toBeLessThan(2);
  expect(startsWith({ provisioned: { "prospects/list": 1 } })).toBe(0);
});

test("a simulated day depends only on its seed, and a larger cache loads no more", () => {
  const [first, again, other] = [1, 1, 2].map((seed) =>
    simulate(few, deployment, measured, seed).latencies.get("list"),
  );
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
  const several = { reps: 50, companies: 20, prospects: 1_000_000 };
  const loadsAt = (memoryMb: number): number =>
    simulate(several, { ...deployment, memoryMb: () => memoryMb }, measured).loadUnits;
  expect(loadsAt(5_120)).toBeLessThan(loadsAt(1_024));
});
