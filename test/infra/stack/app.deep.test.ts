/** Tests that the CDK app has both rule packs of cdk-nag, warns of alarms without a recipient, and makes the operator's AWS budget. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { type App, Stack } from "aws-cdk-lib/core";
import { describe, expect, it } from "vitest";
import { createAlarmTopic } from "../../../infra/stack/alarms.ts";
import { createBudget } from "../../../infra/stack/budget.ts";
import { addRulePacks } from "../../../infra/stack/rules.ts";
import { createApp } from "../../../infra/synth.ts";

/** Returns an app without the check of CloudFormation's rules, which takes seconds. */
function emptyApp(): App {
  const outdir = mkdtempSync(join(tmpdir(), "canvassing-app-"));
  return createApp({ outdir, treeMetadata: false, builtinCloudFormationValidation: false });
}

describe("cdk synth", () => {
  it("warns that alarms have no recipient, unless the deployment names an address", () => {
    const warnings = (alarmEmail?: string): string[] => {
      const app = emptyApp();
      createAlarmTopic(new Stack(app, "Alarms"), alarmEmail);
      const { messages } = app.synth().getStackByName("Alarms");
      return messages.map(({ level, entry }) => `${level}: ${String(entry.data)}`);
    };
    expect(warnings()).toEqual([
      expect.stringMatching(/^warning: Alarms have no recipient: deploy with -c alarmEmail=/),
    ]);
    expect(warnings("operator@example.com")).toEqual([]);
  });

  it("applies both rule packs, so a queue with default settings violates a rule of each", async () => {
    const app = emptyApp();
    new Queue(new Stack(app, "Bare"), "Queue");
    await addRulePacks(app);
    expect(() => app.synth()).toThrow(/AwsSolutions-SQS3[\s\S]*Serverless-SQSRedrivePolicy/);
  });
});

it("a budget mails the operator when it is nearly used up, and when a forecast is above it", () => {
  const app = emptyApp();
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
