/** Tests that the CDK app has the settings of the preset, has both rule packs, and warns of alarms without a recipient. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { type AppProps, Stack } from "aws-cdk-lib/core";
import { describe, expect, it } from "vitest";
import { capacityOf } from "../../../infra/settings/capacity.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { createAlarmTopic } from "../../../infra/stack/alarms.ts";
import { addRulePacks } from "../../../infra/stack/rules.ts";
import { createApp } from "../../../infra/synth.ts";

/** Options without the check of CloudFormation's rules, which takes seconds. */
const quick = { treeMetadata: false, builtinCloudFormationValidation: false } as const satisfies AppProps;

describe("cdk synth", () => {
  it("warns that alarms have no recipient, unless the deployment names an address", () => {
    const warnings = (alarmEmail?: string): string[] => {
      const app = createApp({ ...quick, outdir: mkdtempSync(join(tmpdir(), "canvassing-app-")) });
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
    const app = createApp({ ...quick, outdir: mkdtempSync(join(tmpdir(), "canvassing-app-")) });
    new Queue(new Stack(app, "Bare"), "Queue");
    await addRulePacks(app);
    expect(() => app.synth()).toThrow(/AwsSolutions-SQS3[\s\S]*Serverless-SQSRedrivePolicy/);
  });
});

describe("settings", () => {
  const read = (context: Record<string, unknown>) => () => readConfig(context);

  it("have defaults for a deployment with its own user pool", () => {
    expect(read({})()).toEqual({
      audience: [],
      webhookUrlPolicy: "public",
      timeScale: 1,
      capacity: capacityOf({ preset: "small" }),
      retention: { logDays: 90, importFileDays: 30, recoveryDays: 35 },
      watch: { runbook: "docs/runbook.md", canary: false },
      allowedOrigins: [],
      adopted: {},
      webAcl: false,
      rollout: "at-once",
      serverTiming: false,
    });
  });

  it("have presets for a new account and for production, which settings change", () => {
    expect(read({ preset: "production" })().capacity).toMatchObject({ accountConcurrency: 1_000, jobs: 10 });
    expect(read({})().capacity).toMatchObject({ accountConcurrency: 10, jobs: 2, changesAtOnce: 1 });
    expect(read({ preset: "production", accountConcurrency: "340" })().capacity.accountConcurrency).toBe(340);
    expect(read({ accountConcurrency: "1000", deliverySenders: "80" })().capacity).toMatchObject({
      deliverySenders: 80,
      reserved: {},
    });
  });

  it("fit a new account, in which a function may have 3 008 MB, with the preset production and listMemory", () => {
    const { memoryMb } = read({ preset: "production", listMemory: "3008" })().capacity;
    expect(Math.max(...Object.values(memoryMb).map(Number))).toBe(3_008);
  });

  it("let jobs change records slowly if the quota leaves too few executions for the functions that read the stream", () => {
    const changesAtOnce = (context: Record<string, unknown>) => read(context)().capacity.changesAtOnce;
    // Senders and jobs use 8 executions, requests need 2, and the publisher and the flush one each for each of about four shards: 18.
    expect([10, 11, 12, 14, 17, 18, 1_000].map((accountConcurrency) => changesAtOnce({ accountConcurrency }))).toEqual([
      1, 1, 3, 6, 10, 12, 12,
    ]);
    expect(changesAtOnce({ preset: "production", accountConcurrency: 340 })).toBe(12);
  });

  it("are text on the command line and JSON in settings.json", () => {
    const asText = {
      issuer: "https://id.example.com",
      audience: "web, mobile",
      timeScale: "60",
      allowedOrigins: "",
      serverTiming: "true",
    };
    const asJson = { ...asText, audience: ["web", "mobile"], timeScale: 60, allowedOrigins: [], serverTiming: true };
    expect(read(asText)()).toEqual(read(asJson)());
    expect(read(asText)()).toMatchObject({ audience: ["web", "mobile"], timeScale: 60 });
  });

  it("accept an issuer over http for development only", () => {
    const local = { issuer: "http://127.0.0.1:3000/oidc", audience: "local", webhookUrlPolicy: "local" };
    expect(read(local)()).toMatchObject({ issuer: local.issuer });
  });
});
