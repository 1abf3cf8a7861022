/** Tests where the settings of a deployment come from, its tags, and the AWS budget that mails the operator. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Stack } from "aws-cdk-lib/core";
import { expect, test } from "vitest";
import { readDeployment } from "../../../infra/settings/settings-file.ts";
import { createBudget } from "../../../infra/stack/budget.ts";
import { createApp } from "../../../infra/synth.ts";

function directoryWith(content?: string): string {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-settings-"));
  if (content !== undefined) writeFileSync(join(directory, "settings.json"), content);
  return directory;
}

const read = (content: unknown, context: Readonly<Record<string, unknown>> = {}) =>
  readDeployment(directoryWith(JSON.stringify(content)), context);

test("a setting comes from the context, else from settings.json, else it has its default", () => {
  const file = { stage: "test", alarmEmail: "file@example.com" };
  expect(read(file, { stage: "demo" })).toMatchObject({ stage: "demo", alarmEmail: "file@example.com", timeScale: 1 });
  expect(readDeployment(directoryWith(), {}).stage).toBeUndefined();
});

test.each([
  [{ tabel: "Left" }, "settings.json: tabel: unknown, perhaps table; docs/settings.md lists all settings"],
  [{ "stage:": "test" }, "settings.json: stage:: unknown; docs/settings.md lists all settings"],
  [{ context: { stage: "test" } }, "settings.json: context: unknown; docs/settings.md lists all settings"],
  [{ preset: "large" }, 'settings.json: preset: must be small or production, and not "large"'],
  [{ monthlyBudget: 20 }, "context key alarmEmail: needed with monthlyBudget"],
  [
    { tags: ["aws:x=1"] },
    'settings.json: tags: must be 1 to 40 tags with different keys, such as CostCenter=42, of letters, digits, blanks and _.:/=+-@, which do not begin with aws:, and not "aws:x=1"',
  ],
  [["stage"], 'settings.json: must be an object such as {"preset": "small"}'],
])("%j in settings.json is refused with the place of the fault", (content, message) => {
  expect(() => read(content)).toThrow(new Error(message));
});

test("a file that is no JSON, and a fault of the context, are named", () => {
  expect(() => readDeployment(directoryWith("{"), {})).toThrow(/^settings\.json: is no valid JSON: /);
  expect(() => read({ preset: "small" }, { preset: "large" })).toThrow(/^context key preset: must be small or/);
});

test("tags are pairs of texts, and a value may contain an equals sign", () => {
  expect(read({ tags: "CostCenter=42, Team=a=b" }).tags).toEqual({ CostCenter: "42", Team: "a=b" });
  expect(() => read({ tags: ["A=1", "A=2"] })).toThrow("with different keys");
});

test("a budget mails the operator when it is nearly used up, and when a forecast is above it", () => {
  const outdir = mkdtempSync(join(tmpdir(), "canvassing-budget-"));
  const app = createApp({ outdir, treeMetadata: false, builtinCloudFormationValidation: false });
  createBudget(new Stack(app, "Costs"), 50, "operator@example.com");
  const { template } = app.synth().getStackByName("Costs");
  const subscribers = { Subscribers: [{ SubscriptionType: "EMAIL", Address: "operator@example.com" }] };
  const above = { ComparisonOperator: "GREATER_THAN", ThresholdType: "PERCENTAGE" };
  expect(template.Resources.Budget.Properties).toEqual({
    Budget: { BudgetType: "COST", TimeUnit: "MONTHLY", BudgetLimit: { Amount: 50, Unit: "USD" } },
    NotificationsWithSubscribers: [
      { Notification: { ...above, NotificationType: "ACTUAL", Threshold: 80 }, ...subscribers },
      { Notification: { ...above, NotificationType: "FORECASTED", Threshold: 100 }, ...subscribers },
    ],
  });
});
