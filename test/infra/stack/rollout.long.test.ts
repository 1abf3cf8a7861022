/** Tests that a deployment changes only new code, replaces busy functions gradually, and that callers use the aliases of functions. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { capacityOf, PROVISIONED } from "../../../infra/settings/capacity.ts";
import { createStacks } from "../../../infra/stack/stacks.ts";
import { CloudFormationTemplate, createApp, functionFiles, templateIn } from "../../../infra/synth.ts";
import { references } from "../../harness/cloud/template.ts";
import { at, listed, ownIdentity, synthesized, type Template, target } from "../template.ts";

const template = await synthesized({ ...ownIdentity, rollout: "canary" });
const direct = await synthesized();
const small = await synthesized({ ...ownIdentity, capacity: capacityOf({ preset: "small" }) });

const aliases = template.all("AWS::Lambda::Alias");
/** The id of the alias for each function that has one, by the logical id of the function. */
const aliasOf = new Map(aliases.map(({ id, properties }) => [target(properties.FunctionName) ?? "", id]));

/** Returns the logical ids of all resources to which a value refers. */
const referred = (value: unknown): string[] => references(value).map(({ to }) => to);

test("new code of one function changes only this function, its version and its alias", () => {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-code-"));
  const bundles = join(directory, "bundles");
  const write = (file: string, code: string): void => {
    mkdirSync(join(bundles, file), { recursive: true });
    writeFileSync(join(bundles, file, "index.mjs"), code);
  };
  for (const file of functionFiles()) write(file, "// the code of a function");
  const resourcesIn = (outdir: string) => {
    const app = createApp({ outdir, treeMetadata: false, builtinCloudFormationValidation: false });
    const { service } = createStacks(app, ownIdentity, bundles);
    app.synth();
    return CloudFormationTemplate.parse(templateIn(outdir, service.templateFile)).Resources;
  };
  const before = resourcesIn(join(directory, "before"));
  expect(resourcesIn(join(directory, "again"))).toEqual(before);
  write("prospects/list", "// new code");
  const after = resourcesIn(join(directory, "after"));
  const changed = Object.keys({ ...before, ...after }).filter((id) => !isDeepStrictEqual(before[id], after[id]));
  expect(new Set(changed.map((id) => id.replace(/[0-9A-F]{8}(?:[0-9a-f]{32})?$/, "")))).toEqual(
    new Set(["", "CurrentVersion", "Live"].map((part) => `EndpointsProspectsListFunction${part}`)),
  );
});

test("the functions of daily work have an alias, and others have none", () => {
  const files = aliases.map(({ properties }) => {
    const id = target(properties.FunctionName) ?? "";
    return String(template.resources[id]?.Metadata.file);
  });
  expect(files.length).toBe(aliasOf.size);
  const daily = ["authorize", "prospects/list", "prospects/update", "notes/create", "events/publish", "index/flush"];
  expect(files).toEqual(expect.arrayContaining(daily));
  for (const file of ["users/create", "prospects/export", "prospects/import", "prospects/bulk"])
    expect(files).not.toContain(file);
});

test("without a gradual rollout, CloudFormation moves the aliases at once", () => {
  expect(direct.all("AWS::CodeDeploy::Application")).toEqual([]);
  expect(direct.all("AWS::CodeDeploy::DeploymentGroup")).toEqual([]);
  for (const { resource } of direct.all("AWS::Lambda::Alias")) expect(resource).not.toHaveProperty("UpdatePolicy");
});

test("neither another rollout nor another preset changes what API Gateway and the event sources invoke, and who may invoke it", () => {
  const invoked = ({ all }: Template) => ({
    aliases: all("AWS::Lambda::Alias").map(({ id, properties }) => [id, properties.FunctionName, properties.Name]),
    api: all("AWS::ApiGateway::RestApi").map(({ properties }) => properties.Body),
    roles: all("AWS::IAM::Role")
      .filter(({ id }) => id.includes("Invoker"))
      .map(({ id, properties }) => [id, properties]),
    sources: all("AWS::Lambda::EventSourceMapping").map(({ id, properties }) => [id, properties.FunctionName]),
  });
  expect(invoked(template).roles).toHaveLength(3);
  expect(invoked(direct)).toEqual(invoked(template));
  expect(invoked(small)).toEqual(invoked(template));
});

test("CodeDeploy moves each alias to the new version: a tenth of the calls for five minutes, and back if errors are seen", () => {
  for (const { id, properties, resource } of aliases) {
    const version = template.resources[target(properties.FunctionVersion) ?? ""];
    expect(version?.Type, id).toBe("AWS::Lambda::Version");
    expect(target(version?.Properties.FunctionName), id).toBe(target(properties.FunctionName));
    const policy = at(resource, "UpdatePolicy", "CodeDeployLambdaAliasUpdate");
    const group = template.resources[target(at(policy, "DeploymentGroupName")) ?? ""];
    expect(template.resources[target(at(policy, "ApplicationName")) ?? ""]?.Type, id).toBe(
      "AWS::CodeDeploy::Application",
    );
    expect(group?.Properties, id).toMatchObject({
      DeploymentConfigName: "CodeDeployDefault.LambdaCanary10Percent5Minutes",
      AutoRollbackConfiguration: { Enabled: true, Events: expect.arrayContaining(["DEPLOYMENT_STOP_ON_ALARM"]) },
    });
    const alarms = listed(at(group?.Properties, "AlarmConfiguration", "Alarms")).map((one) => target(at(one, "Name")));
    const metrics = alarms.map((alarm) => at(template.resources[alarm ?? ""]?.Properties, "MetricName"));
    expect(metrics, id).toContain("5XXError");
    expect(metrics.filter((name) => name === "Errors").length, id).toBeGreaterThanOrEqual(3);
    expect(alarms.length, id).toBeLessThanOrEqual(10);
  }
});

test("the API, its role and the event sources call the alias and never the function behind it", () => {
  const behind = new Set(aliasOf.keys());
  const [api] = template.all("AWS::ApiGateway::RestApi");
  const called = new Set(referred(api?.properties.Body));
  expect([...called].filter((id) => behind.has(id))).toEqual([]);
  const mapped = template
    .all("AWS::Lambda::EventSourceMapping")
    .flatMap(({ properties }) => referred(properties.FunctionName));
  expect(mapped.filter((id) => behind.has(id))).toEqual([]);
  const invokers = template.all("AWS::IAM::Role").filter(({ id }) => id.includes("Invoker"));
  const allowed = new Set(invokers.flatMap(({ properties }) => referred(properties.Policies)));
  expect([...allowed].filter((id) => behind.has(id))).toEqual([]);
  for (const alias of aliasOf.values()) {
    expect(called.has(alias) || mapped.includes(alias), alias).toBe(true);
    if (called.has(alias)) expect(allowed.has(alias), alias).toBe(true);
  }
});

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
  // API Gateway must call the alias, to which the ready environments belong. If it called the function itself, Lambda would start another
  // environment.
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
