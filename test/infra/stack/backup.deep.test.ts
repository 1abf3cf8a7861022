/** Tests the backup plan of AWS Backup, the lifecycle rules of the bucket, and a deployment that uses a restored table. */
import { describe, expect, it } from "vitest";
import { lostRights, rightsOf } from "../../../infra/release/rights.ts";
import { people } from "../../../infra/security/people.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { readRetention, retentionOutput } from "../../../infra/settings/retention.ts";
import { documented } from "../../harness/cloud/operator.ts";
import { at, listed, synthesized, type Template, target } from "../template.ts";
import { failures, foreign, loggedBackupEvents, successes } from "./backup-events.ts";

const tableArn = "arn:aws:dynamodb:eu-west-1:123456789012:table/Canvassing-restored";
const tableStreamArn = `${tableArn}/stream/2026-11-22T10:00:00.000`;

const alarmEmail = "operator@example.com";
const settings = { preset: "production", alarmEmail };
const production = await synthesized(readConfig(settings));
const restored = await synthesized(readConfig({ ...settings, activeTableStream: tableStreamArn }));
const kept = { logDays: "1827", recoveryDays: "7", backupMonthlyDays: 120 };
/** The preset `small` with monthly copies and other retention times. */
const monthly = await synthesized(readConfig({ ...kept, alarmEmail }));

describe("the copies of AWS Backup", () => {
  it("are daily for a week and monthly for a year, in a vault that outlives the stack", () => {
    const plan = production.only("AWS::Backup::BackupPlan");
    expect(listed(at(plan.properties, "BackupPlan", "BackupPlanRule"))).toMatchObject([
      { RuleName: "daily", ScheduleExpression: "cron(0 5 * * ? *)", Lifecycle: { DeleteAfterDays: 7 } },
      {
        RuleName: "monthly",
        ScheduleExpression: "cron(0 5 1 * ? *)",
        Lifecycle: { MoveToColdStorageAfterDays: 30, DeleteAfterDays: 365 },
      },
    ]);
    const vault = production.only("AWS::Backup::BackupVault");
    expect(vault.id, "under another id, CloudFormation would make an empty vault").toBe("BackupsVault1F11AFCC");
    expect(JSON.stringify(vault.properties.BackupVaultName), "a new data stack must get a vault of its own").toContain(
      "AWS::StackId",
    );
    expect(vault.resource.DeletionPolicy).toBe("RetainExceptOnCreate");
  });

  it("can be restored with a role of the stack, which the policy of the eraser may pass", () => {
    const [role, ...more] = production
      .all("AWS::IAM::Role")
      .filter(({ properties }) => JSON.stringify(properties).includes("AWSBackupServiceRolePolicyForRestores"));
    expect(more).toEqual([]);
    const [statement] = listed(at(role?.properties, "AssumeRolePolicyDocument", "Statement"));
    expect(at(statement, "Principal", "Service")).toBe("backup.amazonaws.com");
    // The policy of the eraser (the person who manages whole companies) allows roles whose names begin with `Canvassing`. CloudFormation
    // begins the name of a role with the stack's name only if the template gives the role no name.
    expect(role?.properties).not.toHaveProperty("RoleName");
    expect(role?.properties).not.toHaveProperty("Path");
    const pass = people.eraser.rights.find(({ actions }) => actions.includes("iam:PassRole"));
    expect(pass?.resources).toEqual(["arn:aws:iam::*:role/Canvassing*"]);
    expect(target(production.stacks.data.Outputs?.RestoreRoleArn?.Value)).toBe(role?.id);
  });

  it("log each failed job of their vault and no failed job of others", () => {
    for (const event of failures) {
      expect(loggedBackupEvents(production, [event]), JSON.stringify(event)).toHaveLength(1);
    }
    expect(loggedBackupEvents(production, foreign)).toEqual([]);
  });

  /** Returns the alarm of the data stack that watches this metric. */
  const alarmOn = (template: Template, metric: string) =>
    template
      .all("AWS::CloudWatch::Alarm")
      .find(({ id, properties }) => properties.MetricName === metric && id in template.stacks.data.Resources);

  it("are missed after two days: only a completed copy of a table counts", () => {
    const rule = target(at(listed(alarmOn(production, "Invocations")?.properties.Dimensions)[0], "Value"));
    const logged = loggedBackupEvents(production, [...successes, ...failures, ...foreign]);
    const counted = logged.filter(({ file }) => file === rule).map(({ text }) => JSON.parse(text));
    expect(counted).toMatchObject([{ "detail-type": "Backup Job State Change", detail: { state: "COMPLETED" } }]);
    expect(logged, "each job is logged once").toHaveLength(successes.length + failures.length);
    const { Period, EvaluationPeriods } = alarmOn(production, "Invocations")?.properties ?? {};
    expect(Number(Period) * Number(EvaluationPeriods)).toBe(2 * 86_400);
  });

  it("are not missed if the plan makes only monthly copies", () => {
    expect(alarmOn(monthly, "FailedBackupJobs")).toBeDefined();
    expect(alarmOn(monthly, "Invocations")).toBeUndefined();
  });

  it("select the service's table, and a restored one as well", () => {
    const selected = (template: Template) =>
      listed(at(template.all("AWS::Backup::BackupSelection")[0]?.properties, "BackupSelection", "Resources"));
    const own = { "Fn::GetAtt": [production.all("AWS::DynamoDB::Table")[0]?.id, "Arn"] };
    expect(selected(production)).toEqual([own]);
    expect(selected(restored)).toEqual([own, tableArn]);
  });

  it.each([
    [{ backupDailyDays: 14 }, [14]],
    [{ backupMonthlyDays: 120 }, [120]],
    [{}, []],
  ])("with the preset small and %j are kept for %j days", async (context, days) => {
    const rules = readConfig(context).backup;
    expect(Object.values(rules ?? {}).filter((kept) => kept > 0)).toEqual(days);
  });
});

it("the output with the retention times has those of the settings, and that of the longest copy", () => {
  const read = ({ outputs }: Template) => readRetention(String(outputs.Retention?.Value));
  expect(read(production)).toEqual({ logDays: 90, recoveryDays: 35, backupDays: 365 });
  expect(read(monthly)).toEqual({ logDays: 1_827, recoveryDays: 7, backupDays: 120 });
  const { retention, backup } = readConfig({ backupDailyDays: 14 });
  expect(readRetention(retentionOutput(retention, backup))).toMatchObject({ backupDays: 14 });
});

it("files expire in every folder, and have no versions, because each is a copy that somebody else has or can make again", () => {
  const [bucket] = production.all("AWS::S3::Bucket");
  const rules = listed(at(bucket?.properties, "LifecycleConfiguration", "Rules"));
  const days = Object.fromEntries(rules.map((rule) => [at(rule, "Prefix"), at(rule, "ExpirationInDays")]));
  expect(days).toEqual({
    undefined: undefined,
    "uploads/": 30,
    "imports/": 30,
    "exports/": 8,
    "bulk/": 65,
    "company-exports/": 30,
  });
  expect(at(bucket?.properties, "VersioningConfiguration")).toBeUndefined();
});

describe("a service that uses a restored table", () => {
  const text = (template: Template) => JSON.stringify(template.stacks.service.Resources);

  it("names it in every function, policy, event source and output, and the old table nowhere", () => {
    expect(restored.outputs.TableName?.Value).toBe("Canvassing-restored");
    for (const { properties } of restored.all("AWS::Lambda::Function")) {
      const name = at(properties, "Environment", "Variables", "TABLE_NAME");
      expect([undefined, "Canvassing-restored"]).toContain(name);
    }
    const sources = restored.all("AWS::Lambda::EventSourceMapping").map(({ properties }) => properties.EventSourceArn);
    expect(sources.filter((arn) => arn === tableStreamArn)).toHaveLength(2);
    expect(text(restored)).not.toContain("TableCD117FA1");
    expect(text(production)).toContain("TableCD117FA1");
  });

  it("still names the old table in an output, because an erased company must disappear there, too", () => {
    const { TableName, OwnTableName } = production.outputs;
    expect(OwnTableName).toEqual(TableName);
    expect(restored.outputs.OwnTableName).toEqual(OwnTableName);
  });

  it("replaces all functions at once by the documented command, because the old code may not use the new table", () => {
    const [there = "", back = ""] = documented("Restore the whole table", "docs/keep.md").filter((one) =>
      one.startsWith("npx cdk"),
    );
    expect(there).toMatch(/ -c rollout=at-once -c activeTableStream=/);
    expect(back).toContain(" -c rollout=at-once");
    expect(back).not.toContain("activeTableStream");
    const rights = ({ functionOf, resources }: Template) =>
      rightsOf(resources[target(functionOf("prospects/list").properties.Role) ?? ""]?.Properties.Policies);
    expect(lostRights(rights(production), rights(restored)).length).toBeGreaterThan(0);
  });

  it("leaves the data stack as it is, except the selection of its copies", () => {
    const { data } = production.stacks;
    const changed = Object.keys(data.Resources).filter(
      (id) => JSON.stringify(data.Resources[id]) !== JSON.stringify(restored.stacks.data.Resources[id]),
    );
    expect(changed.map((id) => data.Resources[id]?.Type)).toEqual(["AWS::Backup::BackupSelection"]);
    expect(restored.stacks.data.Outputs).toEqual(data.Outputs);
  });
});
