/**
 * Tests what CloudFormation and CodeDeploy do when a production deployment changes the environments that Lambda keeps ready, its preset, or
 * its table without the setting that the document names.
 */
import { describe, expect, it } from "vitest";
import { type DeployConfig, readConfig } from "../../../infra/settings/config.ts";
import type { Stack } from "../../harness/cloud/stack-state.ts";
import { at } from "../template.ts";
import {
  alarmEmail,
  changedBy,
  contextOf,
  LIST,
  production,
  productionAccount,
  resource,
  settings,
  switchCommands,
  versionOf,
  withMemory,
} from "./production-deployment.ts";

const { deployed, moved, cloud } = productionAccount();

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
  expect(cloud().moves.flatMap(({ lost }) => lost)).toEqual([]);
});

describe("the switch to a restored table", () => {
  it("would take the rights of the old code away for minutes, if CodeDeploy moved the aliases", async () => {
    await deployed(production);
    const { rollout: _, ...context } = contextOf(switchCommands[0]);
    await deployed(readConfig({ ...settings, ...context }));
    expect(cloud().moves.length).toBeGreaterThan(20);
    const lost = cloud().moves.filter((move) => move.lost.some(({ action }) => action.startsWith("dynamodb:")));
    expect(lost.map(({ alias }) => alias)).toContainEqual(expect.stringContaining(LIST));
  });
});
