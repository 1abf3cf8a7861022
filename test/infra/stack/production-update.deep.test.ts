/**
 * Tests what CloudFormation and CodeDeploy do when a production deployment changes: new code, an alarm, another preset, and another table.
 * test/harness/cloud simulates both services according to AWS's documentation.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { type DeployConfig, readConfig } from "../../../infra/settings/config.ts";
import { bootstrappedAccount } from "../../harness/cloud/account.ts";
import { documented } from "../../harness/cloud/cdk-command.ts";
import { type CloudFormation, openCloudFormation } from "../../harness/cloud/cloudformation.ts";
import type { Stack } from "../../harness/cloud/stack-state.ts";
import { deployText, textsOf } from "../../harness/cloud/stack-templates.ts";
import { at, synthesized } from "../template.ts";

const alarmEmail = "operator@example.com";
const production = readConfig({ preset: "production", alarmEmail });
const LIST = "EndpointsProspectsListFunctionLive";

let cloud: CloudFormation;
beforeEach(() => {
  cloud = openCloudFormation(bootstrappedAccount());
});

async function deployed(config: DeployConfig): Promise<Stack> {
  const { data, service } = textsOf(await synthesized(config), config);
  deployText(cloud, "Canvassing-Data", data);
  return deployText(cloud, "Canvassing", service);
}

/** Returns the settings with a different memory size for the list function. Deploying them creates a new version of this function only. */
const withMemory = (config: DeployConfig, megabytes: number): DeployConfig => {
  const memoryMb = { ...config.capacity.memoryMb, "prospects/list": megabytes };
  return { ...config, capacity: { ...config.capacity, memoryMb } };
};

const moved = () => cloud.moves.map(({ alias }) => alias.replace(/[0-9A-F]{8}$/, ""));
const resource = ({ resources }: Stack, id: RegExp) => [...resources].find(([name]) => id.test(name))?.[1].made;
const versionOf = (stack: Stack) => resource(stack, new RegExp(`^${LIST}[0-9A-F]{8}$`))?.properties.FunctionVersion;

/** Returns the logical ids of the resources that the last deployment of the stack has created, changed or deleted. */
function changedBy({ events }: Stack): string[] {
  const end = events.findIndex(({ ResourceStatusReason }) => ResourceStatusReason === "User Initiated");
  return [...new Set(events.slice(0, end).map(({ LogicalResourceId }) => LogicalResourceId))];
}

describe("new code of a function", () => {
  it("is the only one that CodeDeploy moves, and the old code keeps its rights", async () => {
    const before = versionOf(await deployed(production));
    expect(cloud.moves).toEqual([]);
    const service = await deployed(withMemory(production, 4_096));
    expect(service.status).toBe("UPDATE_COMPLETE");
    expect(moved()).toEqual([LIST]);
    expect(cloud.moves.flatMap(({ lost }) => lost)).toEqual([]);
    expect(versionOf(service)).not.toBe(before);
  });

  it("is undone if an alarm on errors is on", async () => {
    const before = await deployed(production);
    const version = versionOf(before);
    const alarm = resource(before, /^ApiServerErrors/);
    cloud.account.alarmsOn.add(alarm?.id ?? "");
    const service = await deployed(withMemory(production, 4_096));
    expect(service.status).toBe("UPDATE_ROLLBACK_COMPLETE");
    expect(service.events.map(({ ResourceStatusReason }) => ResourceStatusReason)).toContainEqual(
      expect.stringMatching(/^The deployment was stopped because the alarm \S+ServerErrors\S+ was activated$/),
    );
    expect(versionOf(service)).toBe(version);
    // With the setting `at-once`, CloudFormation updates the function without CodeDeploy. The alarm is still on, but it stops only
    // deployments of CodeDeploy.
    expect((await deployed({ ...withMemory(production, 4_096), rollout: "at-once" })).status).toBe("UPDATE_COMPLETE");
  });

  it("shows which rights the old code loses, if the new role has fewer", async () => {
    await deployed(production);
    const config = withMemory(production, 4_096);
    const { data, service } = textsOf(await synthesized(config), config);
    deployText(cloud, "Canvassing-Data", data);
    deployText(cloud, "Canvassing", service.replaceAll('"dynamodb:BatchGetItem"', '"dynamodb:DescribeTable"'));
    expect(moved()).toEqual([LIST]);
    expect(new Set(cloud.moves.flatMap(({ lost }) => lost).map(({ action }) => action))).toEqual(
      new Set(["dynamodb:BatchGetItem"]),
    );
  });
});

describe("environments that Lambda keeps ready", () => {
  const warm = (warmEnvironments: number): DeployConfig =>
    readConfig({ preset: "production", alarmEmail, warmEnvironments: String(warmEnvironments) });
  const ready = (stack: Stack) =>
    at(
      resource(stack, new RegExp(`^${LIST}[0-9A-F]{8}$`))?.properties,
      "ProvisionedConcurrencyConfig",
      "ProvisionedConcurrentExecutions",
    );

  it("can be added, changed and removed by deployments without new code, and new code can be deployed between them", async () => {
    await deployed(production);
    const steps = [warm(1), withMemory(warm(1), 4_096), withMemory(warm(2), 4_096), withMemory(production, 4_096)];
    const results = [];
    for (const step of steps) {
      const service = await deployed(step);
      results.push([service.status, ready(service)]);
    }
    expect(results).toEqual([1, 1, 2, undefined].map((count) => ["UPDATE_COMPLETE", count]));
    expect(moved()).toEqual([LIST]);
  });

  it.each<[string, DeployConfig["rollout"]]>([
    ["which CodeDeploy moves", "canary"],
    ["which gets all invocations at once", "at-once"],
  ])("cannot change together with new code %s, and two deployments can do it", async (_, rollout) => {
    const before = await deployed({ ...warm(1), rollout });
    const version = versionOf(before);
    const service = await deployed({ ...withMemory(warm(2), 4_096), rollout });
    expect(service.status).toBe("UPDATE_ROLLBACK_COMPLETE");
    expect(service.events.map(({ ResourceStatusReason }) => ResourceStatusReason)).toContain(
      "Alias with weights can not be used with Provisioned Concurrency",
    );
    expect([versionOf(service), ready(service)]).toEqual([version, 1]);
    for (const step of [withMemory(warm(1), 4_096), withMemory(warm(2), 4_096)]) {
      expect((await deployed({ ...step, rollout })).status).toBe("UPDATE_COMPLETE");
    }
    expect(ready(service)).toBe(2);
  });
});

it("the change from the preset small to production changes neither the API's roles nor what they invoke", async () => {
  await deployed(readConfig({ alarmEmail }));
  const service = await deployed(production);
  expect(service.status).toBe("UPDATE_COMPLETE");
  expect(changedBy(service).filter((id) => /Invoker|^Api[0-9A-F]{8}$|EventSourceMapping/.test(id))).toEqual([]);
  expect(cloud.moves.flatMap(({ lost }) => lost)).toEqual([]);
});

describe("the switch to a restored table", () => {
  const commands = documented("Restore the whole table", "docs/keep.md").filter((one) => one.startsWith("npx cdk"));
  const contextOf = (command: string | undefined) =>
    Object.fromEntries([...(command ?? "").matchAll(/-c (\w+)=(\S+)/g)].map(([, key, value]) => [key, value]));
  const settings = { preset: "production", alarmEmail };
  const tableOf = (service: Stack) =>
    at(
      resource(service, /^EndpointsProspectsListFunction[0-9A-F]{8}$/)?.properties,
      "Environment",
      "Variables",
      "TABLE_NAME",
    );

  it("and the way back replace all functions at once, because the old code may not use the new table", async () => {
    const own = tableOf(await deployed(production));
    const [there, back, ...more] = commands;
    expect(more).toEqual([]);
    expect(contextOf(there)).toHaveProperty("activeTableStream");
    const restored = await deployed(readConfig({ ...settings, ...contextOf(there) }));
    expect([restored.status, tableOf(restored)]).toEqual(["UPDATE_COMPLETE", "Canvassing-restored"]);
    expect(contextOf(back)).not.toHaveProperty("activeTableStream");
    const again = await deployed(readConfig({ ...settings, ...contextOf(back) }));
    expect([again.status, tableOf(again)]).toEqual(["UPDATE_COMPLETE", own]);
    expect(moved()).toEqual([]);
  });

  it("would take the rights of the old code away for minutes, if CodeDeploy moved the aliases", async () => {
    await deployed(production);
    const { rollout: _, ...context } = contextOf(commands[0]);
    await deployed(readConfig({ ...settings, ...context }));
    expect(cloud.moves.length).toBeGreaterThan(20);
    const lost = cloud.moves.filter((move) => move.lost.some(({ action }) => action.startsWith("dynamodb:")));
    expect(lost.map(({ alias }) => alias)).toContainEqual(expect.stringContaining(LIST));
  });
});
