/** Tests that docs/cost.md and docs/latency.md contain the tables of the cost model, and that the monthly costs stay below their limits. */
import { expect, test } from "vitest";
import { readConfig } from "../../infra/settings/config.ts";
import { prices } from "../../infra/settings/prices.ts";
import { sized } from "../harness/tier.ts";
import { listed, synthesized, withBackups } from "../infra/template.ts";
import { PRODUCTION_DEFAULTS } from "./cost/assumptions.ts";
import { readMeasured } from "./cost/measured.ts";
import { costLines, costOf } from "./cost/model.ts";
import { monthlyResources } from "./cost/monthly-resources.ts";
import { costsOf, costTables, latencyTables, REPS } from "./cost/tables.ts";
import { deploymentOf, simulate } from "./cost/working-day.ts";
import { readPage, withTables } from "./written-page.ts";

const COMMAND = "npm run cost -- --write";
const measured = readMeasured();
const deployment = deploymentOf("production");

/**
 * The short tests leave out most scenarios with a thousand reps, whose simulation takes ten seconds. A change of the simulation also alters
 * the days with fewer reps.
 */
const reps = sized({ short: REPS.filter((count) => count < 1_000), wide: [...REPS] });
const left = REPS.filter((count) => !reps.includes(count));
const costs = costsOf(measured, reps);
/** Leaves out the rows for the numbers of reps in `left`, and the padding of the columns, whose width depends on all rows. */
const withoutLeft = (text: string): string[] =>
  text
    .split("\n")
    .filter((line) => !left.some((count) => line.startsWith(`| ${count} `)))
    .map((line) => line.replaceAll(/ {2,}/g, " ").replaceAll(/-{2,}/g, "--"));

test("docs/cost.md has the tables of `npm run cost -- --write`", { tags: "sized" }, () => {
  const page = readPage("cost.md");
  expect(withoutLeft(page)).toEqual(withoutLeft(withTables(page, COMMAND, costTables(measured, costs))));
});

test("docs/latency.md has the tables of `npm run cost -- --write`", { tags: "sized" }, () => {
  const rowsOf = (text: string): string[] => withoutLeft(text).filter((line) => line.startsWith("|"));
  expect(rowsOf(readPage("latency.md"))).toEqual(rowsOf(latencyTables(measured, reps)));
});

const oneCompany = costOf({ reps: 1_000, companies: 1, prospects: 100_000 }, deployment, measured);

test("1 000 reps of one company with 100 000 prospects cost at most 110 dollars a month", () => {
  const { lines, total } = oneCompany;
  expect(total).toBeLessThanOrEqual(110);
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
  expect(oneCompany.total + dollars).toBeLessThanOrEqual(110);
  const template = await synthesized(readConfig({ preset: "production", alarmEmail: "operator@example.com" }));
  const [acl] = template.all("AWS::WAFv2::WebACL");
  expect(listed(acl?.properties.Rules)).toHaveLength(webAclRules);
});

test("with the defaults of the preset, a deployment also pays for the web ACL, the smoke test and the backups", () => {
  // The defaults of the preset cost this much in a month: 0.60 dollars for each million of the 15 million requests (web ACL), 10 dollars
  // for the web ACL with its rules, 2.05 for the smoke test, 0.50 for the alarms and the metric of the backups, and 1.13 for the copies of
  // each GB.
  const requests = 0.6 * ((1_000 * 6 * 21 * 119) / 1_000_000);
  const copies = 1.13 * ((100_000 * measured.storedBytes) / 2 ** 30);
  expect(oneCompany.withDefaults - oneCompany.total).toBeCloseTo(requests + 10 + 2.05 + 0.5 + copies);
  for (const { preset, total, withDefaults } of costs) {
    if (preset === "small") expect(withDefaults, "the preset small has none of them").toBe(total);
  }
});

test("for a lone rep, the smoke test or a provisioned environment avoids nearly all cold starts of the list function", () => {
  const oneRep = { reps: 1, companies: 1, prospects: 100_000 };
  const startsWith = (more: object): number | undefined =>
    simulate(oneRep, { ...deployment, ...more }, measured).functions.get("prospects/list")?.starts;
  expect(startsWith({})).toBeGreaterThan(5);
  expect(startsWith({ smokeTestMinutes: 5 })).toBeLessThan(2);
  expect(startsWith({ provisioned: { "prospects/list": 1 } })).toBe(0);
});

test("a larger cache does not load more", () => {
  const several = { reps: 50, companies: 20, prospects: 1_000_000 };
  const loadsAt = (memoryMb: number): number =>
    simulate(several, { ...deployment, memoryMb: () => memoryMb }, measured).loadUnits;
  expect(loadsAt(5_120)).toBeLessThan(loadsAt(1_024));
});
