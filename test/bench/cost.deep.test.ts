/**
 * Tests the cost model: docs/cost.md and docs/latency.md contain its current output, the monthly costs stay below their limits, and a
 * simulated day is reproducible and plausible.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { readConfig } from "../../infra/settings/config.ts";
import { prices } from "../../infra/settings/prices.ts";
import { sized } from "../harness/tier.ts";
import { listed, synthesized, withBackups } from "../infra/template.ts";
import { PRODUCTION_DEFAULTS } from "./cost/assumptions.ts";
import { designOf } from "./cost/design.ts";
import { LOADED_PROSPECTS } from "./cost/index-costs.ts";
import { latencyReport, REPS } from "./cost/latency.ts";
import { readMeasured } from "./cost/measured.ts";
import { type Cost, costLines, costOf } from "./cost/model.ts";
import { monthlyResources } from "./cost/monthly-resources.ts";
import { costsOf, report } from "./cost/report.ts";
import { simulate } from "./cost/working-day.ts";

const measured = readMeasured();
const design = designOf("production");
const costs = costsOf(measured);
const few = { reps: 50, companies: 1, prospects: 100_000 };

test("docs/cost.md is the output of `npm run cost -- --write`", () => {
  expect(readFileSync(join(import.meta.dirname, "../../docs/cost.md"), "utf8")).toBe(report(measured, costs));
});

test("docs/latency.md is the output of `npm run simulate -- --write`", { tags: "sized" }, () => {
  // The short test leaves out the days with a thousand reps, because their simulation takes ten seconds. A change of the simulation still
  // makes a test fail: it alters the days with fewer reps, or the costs of a thousand reps in docs/cost.md, which the test above compares.
  const reps = sized({ short: REPS.filter((count) => count < 1_000), wide: [...REPS] });
  const left = REPS.filter((count) => !reps.includes(count));
  const page = readFileSync(join(import.meta.dirname, "../../docs/latency.md"), "utf8").split("\n");
  const shown = page.filter((line) => !left.some((count) => line.startsWith(`| ${count} |`)));
  expect(shown.join("\n")).toBe(latencyReport(measured, { prospects: LOADED_PROSPECTS, reps }));
});

test("the resources with a monthly price are those of the templates", async () => {
  expect(measured.resources).toEqual(await monthlyResources());
});

test.each([
  [{ reps: 1_000, companies: 1, prospects: 100_000 }, 110],
  [{ reps: 1_000, companies: 200, prospects: 100_000 }, 130],
  [{ reps: 1_000, companies: 20, prospects: 1_000_000 }, 200],
])("%o costs at most %d dollars a month", (scenario, dollars) => {
  expect(costs.find((cost) => isDeepStrictEqual(cost.scenario, scenario))?.total).toBeLessThanOrEqual(dollars);
});

const largeOf = (all: readonly Cost[]) =>
  all.find(
    ({ scenario: { reps, companies, prospects } }) => reps === 1_000 && companies === 1 && prospects === 100_000,
  );

test("one large company costs at most 110 dollars a month also with the alarms of the backups", async () => {
  const { alarms, metrics } = await monthlyResources(withBackups);
  const { backupAlarms, backupMetrics } = PRODUCTION_DEFAULTS;
  expect([alarms - measured.resources.alarms, metrics - measured.resources.metrics]).toEqual([
    backupAlarms,
    backupMetrics,
  ]);
  const dollars = backupAlarms * prices.cloudWatch.alarmMonth + backupMetrics * prices.cloudWatch.metricMonth;
  expect((largeOf(costs)?.total ?? Number.NaN) + dollars).toBeLessThanOrEqual(110);
});

test("with the defaults of the preset, a deployment also pays for the web ACL, the smoke test and the backups", async () => {
  const template = await synthesized(readConfig({ preset: "production", alarmEmail: "operator@example.com" }));
  const [acl] = template.all("AWS::WAFv2::WebACL");
  expect(listed(acl?.properties.Rules)).toHaveLength(PRODUCTION_DEFAULTS.webAclRules);
  const large = largeOf(costs);
  // The default parts cost this much in a month: 0.60 dollars for each million of the 15 million requests (web ACL), 10 dollars for the web
  // ACL with its rules, 2.05 for the smoke test, 0.50 for the alarms and the metric of the backups, and 1.13 for the copies of each GB.
  const requests = 0.6 * ((1_000 * 6 * 21 * 119) / 1_000_000);
  const copies = 1.13 * ((100_000 * measured.storedBytes) / 2 ** 30);
  expect((large?.withDefaults ?? 0) - (large?.total ?? 0)).toBeCloseTo(requests + 10 + 2.05 + 0.5 + copies);
  for (const { preset, total, withDefaults } of costs) {
    if (preset === "small") expect(withDefaults, "the preset small has none of them").toBe(total);
  }
});

test("a lone rep finds prospects in memory, and a company of 1 000 reps has too many for it", () => {
  const one = simulate({ ...few, reps: 1 }, { ...design, smokeTestMinutes: 5 }, measured);
  expect(one.unread.list).toBeLessThan(0.8);
  for (const { scenario, day } of costs) if (scenario.reps === 1_000) expect(day.unread.list).toBeGreaterThan(0.9);
  expect(simulate(few, { ...design, keepsRows: false }, measured).unread.list).toBe(1);
});

test("the scheduled smoke test leaves a lone rep hardly any start of lists", () => {
  const startsWith = (smokeTestMinutes: number | undefined): number | undefined =>
    simulate(
      { ...few, reps: 1 },
      { ...design, ...(smokeTestMinutes !== undefined && { smokeTestMinutes }) },
      measured,
    ).functions.get("prospects/list")?.starts;
  expect(startsWith(undefined)).toBeGreaterThan(5);
  expect(startsWith(5)).toBeLessThan(2);
});

test("a simulated day depends only on its seed", () => {
  const [first, again, other] = [1, 1, 2].map((seed) => simulate(few, design, measured, seed).latencies.get("list"));
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
});

test("a larger cache loads no more, and provisioned environments leave no starts of one rep's lists", () => {
  const several = { reps: 50, companies: 20, prospects: 1_000_000 };
  const loadsAt = (memoryMb: number): number =>
    simulate(several, { ...design, memoryMb: () => memoryMb }, measured).loadUnits;
  expect(loadsAt(5_120)).toBeLessThanOrEqual(loadsAt(1_024));
  const one = { reps: 1, companies: 1, prospects: 100_000 };
  const startsWith = (count: number): number | undefined =>
    simulate(one, { ...design, provisioned: { "prospects/list": count } }, measured).functions.get("prospects/list")
      ?.starts;
  expect(startsWith(0)).toBeGreaterThan(0);
  expect(startsWith(1)).toBe(0);
});

test("ETags save dollars of small companies and cost none of large ones", () => {
  for (const companies of [1, 50]) {
    const scenario = { ...few, companies };
    const without = costOf(scenario, { ...design, revalidates: false }, measured);
    const cost = costOf(scenario, design, measured);
    expect(cost.lines["data out"]).toBeLessThan(without.lines["data out"]);
    expect(costLines.reduce((sum, line) => sum + cost.lines[line], 0)).toBeCloseTo(cost.total);
  }
});
