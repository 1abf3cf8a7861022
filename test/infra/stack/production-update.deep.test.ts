/**
 * Tests what CloudFormation and CodeDeploy do when a production deployment changes: new code, an alarm, and another table.
 * test/harness/cloud simulates both services according to AWS's documentation.
 */
import { describe, expect, it } from "vitest";
import { readConfig } from "../../../infra/settings/config.ts";
import type { Stack } from "../../harness/cloud/stack-state.ts";
import { deployText, textsOf } from "../../harness/cloud/stack-templates.ts";
import { at, synthesized } from "../template.ts";
import {
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

describe("new code of a function", () => {
  it("is the only one that CodeDeploy moves, and the old code keeps its rights", async () => {
    const before = versionOf(await deployed(production));
    expect(cloud().moves).toEqual([]);
    const service = await deployed(withMemory(production, 4_096));
    expect(service.status).toBe("UPDATE_COMPLETE");
    expect(moved()).toEqual([LIST]);
    expect(cloud().moves.flatMap(({ lost }) => lost)).toEqual([]);
    expect(versionOf(service)).not.toBe(before);
  });

  it("is undone if an alarm on errors is on", async () => {
    const before = await deployed(production);
    const version = versionOf(before);
    const alarm = resource(before, /^ApiServerErrors/);
    cloud().account.alarmsOn.add(alarm?.id ?? "");
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
    deployText(cloud(), "Canvassing-Data", data);
    deployText(cloud(), "Canvassing", service.replaceAll('"dynamodb:BatchGetItem"', '"dynamodb:DescribeTable"'));
    expect(moved()).toEqual([LIST]);
    expect(
      new Set(
        cloud()
          .moves.flatMap(({ lost }) => lost)
          .map(({ action }) => action),
      ),
    ).toEqual(new Set(["dynamodb:BatchGetItem"]));
  });
});

describe("the switch to a restored table", () => {
  const tableOf = (service: Stack) =>
    at(
      resource(service, /^EndpointsProspectsListFunction[0-9A-F]{8}$/)?.properties,
      "Environment",
      "Variables",
      "TABLE_NAME",
    );

  it("and the way back replace all functions at once, because the old code may not use the new table", async () => {
    const own = tableOf(await deployed(production));
    const [there, back, ...more] = switchCommands;
    expect(more).toEqual([]);
    expect(contextOf(there)).toHaveProperty("activeTableStream");
    const restored = await deployed(readConfig({ ...settings, ...contextOf(there) }));
    expect([restored.status, tableOf(restored)]).toEqual(["UPDATE_COMPLETE", "Canvassing-restored"]);
    expect(contextOf(back)).not.toHaveProperty("activeTableStream");
    const again = await deployed(readConfig({ ...settings, ...contextOf(back) }));
    expect([again.status, tableOf(again)]).toEqual(["UPDATE_COMPLETE", own]);
    expect(moved()).toEqual([]);
  });
});
