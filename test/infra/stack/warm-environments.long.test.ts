/**
 * Tests the setting `warmEnvironments`. With it, Lambda keeps environments of three functions ready, and API Gateway must use exactly these
 * environments.
 */
import { expect, test } from "vitest";
import { capacityOf, PROVISIONED } from "../../../infra/settings/capacity.ts";
import { at, ownIdentity, synthesized, target } from "../template.ts";

test("with warm environments API Gateway invokes three functions by the alias with these environments, and may invoke it", async () => {
  const capacity = capacityOf({ preset: "production", warmEnvironments: 2 });
  const template = await synthesized({ ...ownIdentity, capacity });
  const aliases = template
    .all("AWS::Lambda::Alias")
    .filter(({ properties }) => "ProvisionedConcurrencyConfig" in properties);
  const ids = PROVISIONED.map((file) => template.functionOf(file).id);
  expect(aliases.map(({ properties }) => target(properties.FunctionName)).sort()).toEqual(ids.toSorted());
  const versions = template.all("AWS::Lambda::Version").map(({ id }) => id);
  const definition = JSON.stringify(template.all("AWS::ApiGateway::RestApi")[0]?.properties.Body);
  const rights = JSON.stringify(template.all("AWS::IAM::Role").map(({ properties }) => properties));
  for (const { id, properties } of aliases) {
    expect(at(properties, "ProvisionedConcurrencyConfig", "ProvisionedConcurrentExecutions")).toBe(2);
    expect(versions).toContain(target(properties.FunctionVersion));
    expect(definition).toContain(JSON.stringify({ Ref: id }));
    expect(rights).toContain(JSON.stringify({ Ref: id }));
  }
  // The ready environments belong to the alias. If API Gateway called the function itself, Lambda would start another environment.
  for (const id of ids) expect(definition).not.toContain(JSON.stringify({ "Fn::GetAtt": [id, "Arn"] }));
});

test("a change of the setting changes neither code nor versions, so CodeDeploy moves no alias", async () => {
  // The metadata contains the directory of the synthesis. CloudFormation does not deploy metadata, so `deployed` leaves it out.
  const deployed = (resource: object | undefined): string => JSON.stringify({ ...resource, Metadata: undefined });
  const resourcesOf = async (warmEnvironments: number) => {
    const capacity = capacityOf({ preset: "production", warmEnvironments });
    return (await synthesized({ ...ownIdentity, capacity, rollout: "canary" })).stacks.service.Resources;
  };
  const [none, one, two] = await Promise.all([0, 1, 2].map(resourcesOf));
  for (const [before = {}, after = {}] of [
    [none, one],
    [one, two],
  ]) {
    const ids = Object.keys({ ...before, ...after });
    const changed = ids.filter((id) => deployed(before[id]) !== deployed(after[id]));
    const types = changed.map((id) => after[id]?.Type);
    // The usage plan changes too, because it limits each company to a share of the executions that the warm environments leave.
    expect(types.filter((type) => type !== "AWS::ApiGateway::UsagePlan")).toEqual(
      PROVISIONED.map(() => "AWS::Lambda::Alias"),
    );
  }
});

test("warm environments count as reserved concurrency of the account", () => {
  expect(capacityOf({ preset: "production" }).provisioned).toEqual({});
  const choice = { preset: "small", accountConcurrency: 110, warmEnvironments: 4 } as const;
  expect(() => capacityOf(choice)).toThrow("context key warmEnvironments: the settings reserve 12 of");
  expect(capacityOf({ ...choice, warmEnvironments: 3 }).provisioned).toMatchObject({ "prospects/list": 3 });
});
