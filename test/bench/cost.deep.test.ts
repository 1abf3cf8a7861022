/** Tests that docs/cost.md contains the tables of the cost model, and that the monthly costs stay below their limits. */
import { expect, test } from "vitest";
import { readConfig } from "../../infra/settings/config.ts";
import { sized } from "../harness/tier.ts";
import { listed, synthesized, withBackups } from "../infra/template.ts";
import { PRODUCTION_DEFAULTS } from "./cost/assumptions.ts";
import { readMeasured } from "./cost/measured.ts";
import { costLines, costOf } from "./cost/model.ts";
import { monthlyResources } from "./cost/monthly-resources.ts";
import { prices } from "./cost/prices.ts";
import { costsOf, costTables, REPS } from "./cost/tables.ts";
import { deploymentOf } from "./cost/working-day.ts";
import { readPage, withTables } from "./written-page.ts";

const COMMAND = "npm run cost -- --write";
const measured = readMeasured();
const deployment = deploymentOf("production");

/**
 * The short tests leave out most scenarios with a thousand reps, whose simulation takes ten seconds. A change of the simulation also alters
 * the days with fewer reps, so the short tests notice it too.
 */
const reps = sized({ short: REPS.filter((count) => count < 1_000), wide: [...REPS] });
const left = REPS.filter((count) => !reps.includes(count));
const costs = costsOf(measured, reps);
/** Returns the lines of a page without the rows for the numbers of reps in `left`, and without padding, whose width depends on all rows. */
const withoutLeft = (text: string): string[] =>
  text
    .split("\n")
    .filter((line) => !left.some((count) => line.startsWith(`| ${count} `)))
    .map((line) => line.replaceAll(/ {2,}/g, " ").replaceAll(/-{2,}/g, "--"));

test("docs/cost.md has the tables of `npm run cost -- --write`", { tags: "sized" }, () => {
  const page = readPage("cost.md");
  expect(withoutLeft(page)).toEqual(withoutLeft(withTables(page, COMMAND, costTables(measured, costs))));
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
