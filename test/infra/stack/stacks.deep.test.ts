/**
 * Tests that the data stack is protected, keeps its logical ids, and can use what an earlier deployment left. Also tests that the service
 * stack has room for more routes.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AppProps } from "aws-cdk-lib/core";
import { describe, expect, it } from "vitest";
import { consoleDirectory } from "../../../infra/build/console.ts";
import { consoleFiles } from "../../../infra/edge/console-site.ts";
import { withoutNesting } from "../../../infra/nested-stacks.ts";
import type { Route } from "../../../infra/routes/route.ts";
import { routes } from "../../../infra/routes/routes.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { createDataStack } from "../../../infra/stack/data-stack.ts";
import { createStacks } from "../../../infra/stack/stacks.ts";
import { CloudFormationTemplate, createApp, functionFiles } from "../../../infra/synth.ts";
import { at, largest, listed, ownIdentity, synthesized, type Template, target } from "../template.ts";

const template = await synthesized();

/** CloudFormation's maximum number of resources in one stack. */
const MAX_RESOURCES = 500;
/** Maximum number of resources in a release. The resources up to `MAX_RESOURCES` are a reserve for an urgent release. */
const MOST_RESOURCES = 470;
/** CloudFormation's limit for the parameters of a stack, and for its outputs. */
const MAX_VALUES = 200;
/** CloudFormation's maximum size of a template in S3. */
const MAX_TEMPLATE_BYTES = 1_000_000;
/** API Gateway's maximum number of resources in one API. Each distinct path is a resource, and so is each of its parent paths. */
const MAX_API_RESOURCES = 300;
/** IAM's maximum number of characters in all inline policies of a role. */
const MAX_INLINE_POLICIES = 10_240;
/** An ARN of the greatest length: of the alias of a function with the longest name, in a region with a long name. */
const LONGEST_ARN = `arn:aws:lambda:ap-southeast-1:123456789012:function:${"f".repeat(64)}:live`;

/** A faster synthesis: no copies of bundles, no stack traces, and no check of CloudFormation's rules (see app.long.test.ts). */
const quick = {
  treeMetadata: false,
  builtinCloudFormationValidation: false,
  context: {
    "aws:cdk:disable-asset-staging": true,
    "aws:cdk:disable-stack-trace": true,
    "aws:cdk:disable-creation-stack-traces": true,
  },
} as const satisfies AppProps;

interface Written extends CloudFormationTemplate {
  readonly bytes: number;
}

function templateOf(templateFile: string, directory: string): Written {
  const text = readFileSync(join(directory, templateFile), "utf8");
  return { ...CloudFormationTemplate.parse(JSON.parse(text)), bytes: Buffer.byteLength(text) };
}

/** Returns the templates of all stacks in a directory, with nested stacks as stacks of their own. */
const allStacks = (directory: string): Written[] =>
  readdirSync(directory)
    .filter((file) => file.endsWith(".template.json"))
    .map((file) => templateOf(file, directory));

/** The resources with data. If an id changed, CloudFormation would create an empty resource, and the service would lose its data. */
const keepers: Readonly<Record<string, string>> = {
  TableCD117FA1: "AWS::DynamoDB::Table",
  Files8E6940B8: "AWS::S3::Bucket",
  UserPool6BA7E5F2: "AWS::Cognito::UserPool",
  UserPoolClient43258C81: "AWS::Cognito::UserPoolClient",
  SecretsKey317DCF94: "AWS::KMS::Key",
  ImportsQueue807CB1E9: "AWS::SQS::Queue",
  ImportsDeadLetters741CB14C: "AWS::SQS::Queue",
};

const withoutData = new Set([
  "AWS::ApiGateway::Account",
  "AWS::IAM::Role",
  "AWS::CloudWatch::Alarm",
  "AWS::S3::BucketPolicy",
  "AWS::SNS::Subscription",
  "AWS::SNS::Topic",
  "AWS::SNS::TopicPolicy",
  "AWS::SQS::QueuePolicy",
]);
/** The logical id of this encryption key may change, because the key encrypts only messages of alarms and no stored data. */
const ALARM_KEY = "AlarmKeyE05DE300";

describe("the data stack", () => {
  it("has each resource with data under the logical id of its first deployment", () => {
    const { Resources } = template.stacks.data;
    for (const [id, type] of Object.entries(keepers)) {
      expect(Resources[id]?.Type, `${id} (${type}) is not in the data's stack`).toBe(type);
    }
    const others = Object.entries(Resources).filter(([id, { Type }]) => !(id in keepers) && !withoutData.has(Type));
    const ids = others.map(([id]) => id);
    expect(ids, "add a new resource with data to the list of this test").toEqual([ALARM_KEY]);
  });

  it("retains its resources when it is destroyed or a resource is replaced, but leaves none behind if its first deployment fails", () => {
    for (const id of Object.keys(keepers)) {
      expect(template.stacks.data.Resources[id], id).toMatchObject({
        DeletionPolicy: "RetainExceptOnCreate",
        UpdateReplacePolicy: "Retain",
      });
    }
  });

  it("is protected against termination, and deployed before the service", () => {
    const manifest: unknown = JSON.parse(readFileSync(join(template.directory, "manifest.json"), "utf8"));
    const property = (stack: string, name: string) => at(manifest, "artifacts", stack, "properties", name);
    expect(property("Canvassing-Data", "terminationProtection")).toBe(true);
    expect(property("Canvassing", "terminationProtection")).toBe(false);
    expect(at(manifest, "artifacts", "Canvassing", "dependencies")).toContain("Canvassing-Data");
  });

  it("exports the same values whether the service uses them or not", () => {
    const app = createApp({ ...quick, outdir: mkdtempSync(join(tmpdir(), "canvassing-data-")) });
    const alone = templateOf(createDataStack(app, ownIdentity).stack.templateFile, app.synth().directory);
    const names = ({ Outputs }: CloudFormationTemplate) =>
      Object.values(Outputs).flatMap(({ Export }) => Export?.Name ?? []);
    expect(names(alone).toSorted()).toEqual(
      [
        "ExportsOutputFnGetAttFiles8E6940B8ArnD8EE6C03",
        "ExportsOutputFnGetAttImportsQueue807CB1E9Arn2C506A4B",
        "ExportsOutputFnGetAttSecretsKey317DCF94Arn94500D76",
        "ExportsOutputFnGetAttTableCD117FA1ArnE2C8C204",
        "ExportsOutputFnGetAttTableCD117FA1StreamArnB270E65B",
        "ExportsOutputFnGetAttUserPool6BA7E5F2Arn686ACC00",
        "ExportsOutputFnGetAttUserPool6BA7E5F2ProviderURL1DC61701",
        "ExportsOutputRefAlarms04B5A0BF701FB519",
        "ExportsOutputRefFiles8E6940B842DACF39",
        "ExportsOutputRefImportsDeadLetters741CB14C2942A724",
        "ExportsOutputRefImportsQueue807CB1E99B65BBE9",
        "ExportsOutputRefTableCD117FA1D18A8047",
        "ExportsOutputRefUserPool6BA7E5F296FD7236",
        "ExportsOutputRefUserPoolClient43258C81F27210F0",
      ].map((name) => `Canvassing-Data:${name}`),
    );
    expect(names(template.stacks.data).toSorted()).toEqual(names(alone).toSorted());
  });
});

const staged = await synthesized({ ...ownIdentity, stage: "test" });

describe("a deployment with a stage", () => {
  it("has stacks, exports, metrics and an API of its own name, and the same logical ids", () => {
    const manifest: unknown = JSON.parse(readFileSync(join(staged.directory, "manifest.json"), "utf8"));
    expect(at(manifest, "artifacts", "Canvassing-test", "dependencies")).toContain("Canvassing-test-Data");
    expect(at(manifest, "artifacts", "Canvassing-test-Data", "properties", "terminationProtection")).toBe(true);
    // Removes the hashes of the API's definition, of a function's settings and of an asset's path, because two deployments may differ in
    // them.
    const plain = (text: string) =>
      text.replace(/(?<=(?:ApiDeployment|CurrentVersion)[0-9A-F]{8})[0-9a-f]{32}|[0-9a-f]{64}(?=\.zip)/g, "");
    const lines = (from: Template, stack: "data" | "service") =>
      plain(JSON.stringify(from.stacks[stack], null, 1))
        .replaceAll(from.directory, "")
        .split("\n");
    for (const stack of ["data", "service"] as const) {
      const expected = lines(template, stack);
      const differing = lines(staged, stack).filter(
        (line, i) => line.replaceAll("Canvassing-test", "Canvassing") !== expected[i],
      );
      expect(differing).toEqual([]);
      expect(lines(staged, stack).some((line) => line.includes('"Canvassing-test'))).toBe(true);
    }
  });

  it("names no resource that another deployment in the account names too", () => {
    const names = (from: Template) =>
      Object.entries(from.resources).flatMap(([id, { Properties }]) =>
        Object.entries(Properties).flatMap(([name, value]) =>
          /Name$/.test(name) && typeof value === "string" ? [`${id}.${name}: ${value}`] : [],
        ),
      );
    // The name of a metric, an API stage, an alias or a bucket rule must be unique only within its parent resource.
    const own = /\.(?:MetricName|StageName|Namespace|HandlerName): |Live[0-9A-F]{8}\.Name: /;
    const taken = new Set(names(template));
    expect(names(staged).filter((name) => taken.has(name) && !own.test(name))).toEqual([]);
  });
});

it("names resources of CloudFront after the region, because their names must be unique in all regions together", async () => {
  const { resources } = await synthesized(largest);
  const named = Object.entries(resources).flatMap(([id, { Type, Properties }]) => {
    if (!Type.startsWith("AWS::CloudFront::")) return [];
    const name = [Properties, ...Object.values(Properties)].map((part) => at(part, "Name")).find(Boolean);
    return name === undefined ? [] : [[id, JSON.stringify(name)] as const];
  });
  expect(named).toHaveLength(4);
  for (const [id, name] of named) expect(name, id).toContain("AWS::Region");
});

const ENDPOINTS = 150;

it("the largest deployment leaves a reserve of resources in each stack", async () => {
  const stacks = allStacks((await synthesized(largest)).directory);
  expect(stacks).toHaveLength(3);
  for (const stack of stacks) expect(sizeOf(stack)).toBeLessThanOrEqual(MOST_RESOURCES);
});

/** Returns `ENDPOINTS` routes: the real routes, and as many copies of them with other paths as are needed. */
function manyRoutes(): Route[] {
  const more = Array.from({ length: ENDPOINTS - routes.length }, (_, i) => {
    const route = routes[i % routes.length];
    if (route === undefined) throw new Error("the route is missing");
    return { ...route, path: `/more${Math.floor(i / routes.length)}${route.path}`, file: `more/${i}/${route.file}` };
  });
  return [...routes, ...more];
}

function synthesizedFor(table: readonly Route[]) {
  const outdir = mkdtempSync(join(tmpdir(), "canvassing-routes-"));
  const bundles = join(outdir, "bundles");
  for (const file of functionFiles(table)) {
    mkdirSync(join(bundles, file), { recursive: true });
    writeFileSync(join(bundles, file, "index.mjs"), "");
  }
  const app = createApp({ ...quick, outdir });
  const stacks = createStacks(app, largest, bundles, table);
  const warnings = app.synth().stacks.flatMap(({ messages }) => messages.map(({ entry }) => String(entry.data)));
  const service = templateOf(stacks.service.templateFile, outdir);
  return { all: allStacks(outdir), service, warnings };
}

/** Returns all paths of the API and all their parent paths. API Gateway counts each of them as one resource. */
function partsOf({ Resources }: CloudFormationTemplate): Set<string> {
  const api = Object.values(Resources).find(({ Type }) => Type === "AWS::ApiGateway::RestApi");
  const paths = Object.keys(at(api, "Properties", "Body", "paths") ?? {});
  return new Set(paths.flatMap((path) => path.split("/").map((_, i, parts) => parts.slice(0, i + 1).join("/"))));
}

const sizeOf = ({ Resources }: CloudFormationTemplate): number => Object.keys(Resources).length;

describe(`${ENDPOINTS} endpoints of the largest deployment`, () => {
  const table = manyRoutes();
  const many = synthesizedFor(table);

  it("are synthesized without a warning", () => {
    expect(new Set(table.map(({ method, path }) => `${method} ${path}`)).size).toBe(ENDPOINTS);
    // The CDK warns from 400 resources on, so this warning is expected. The next test checks the limit of CloudFormation itself.
    const expected = /^Alarms have no recipient|^Number of resources: \d+ is approaching|^The console is not built/;
    expect(many.warnings.filter((text) => !expected.test(text))).toEqual([]);
    const isBuilt = consoleFiles() === consoleDirectory;
    expect(many.warnings.some((text) => text.startsWith("The console is not built"))).toBe(!isBuilt);
  });

  it("fit the limits of CloudFormation and API Gateway", () => {
    expect(many.all).toHaveLength(3);
    for (const stack of many.all) {
      expect(sizeOf(stack)).toBeLessThan(MAX_RESOURCES);
      expect(stack.bytes).toBeLessThan(MAX_TEMPLATE_BYTES);
      expect(Object.keys(stack.Parameters ?? {}).length).toBeLessThan(MAX_VALUES);
      expect(Object.keys(stack.Outputs).length).toBeLessThan(MAX_VALUES);
    }
    expect(partsOf(many.service).size).toBeLessThan(MAX_API_RESOURCES);
  });

  it("fit the policies of the roles with which API Gateway invokes them", () => {
    const invokers = Object.entries(many.service.Resources).filter(([id]) => /Invoker[0-9A-F]{8}$/.test(id));
    expect(invokers).toHaveLength(3);
    for (const [id, { Properties }] of invokers) {
      const text = JSON.stringify(at(Properties, "Policies", 0, "PolicyDocument"), (_, value: unknown) =>
        target(value) === undefined ? value : LONGEST_ARN,
      );
      expect(text.length, id).toBeLessThan(MAX_INLINE_POLICIES);
    }
  });

  it("need one resource each in two stacks, even on new paths: a function and its role", async () => {
    const sizes = (stacks: readonly Written[]) => stacks.map(sizeOf).toSorted((a, b) => a - b);
    const added = ENDPOINTS - routes.length;
    const [data = 0, roles = 0, service = 0] = sizes(allStacks((await synthesized(largest)).directory));
    expect(sizes(many.all)).toEqual([data, roles + added, service + added]);
  });
});

it("a template without nesting has no two resources with the same logical id", () => {
  const role = { Type: "AWS::IAM::Role" };
  const parent = { Resources: { Role: role, Roles: { Type: "AWS::CloudFormation::Stack" } } };
  expect(() => withoutNesting(parent, () => ({ Resources: { Role: role } }))).toThrow(
    "Role is a resource of a nested stack and of its parent",
  );
});

const secretsKey = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const newData = await synthesized(readConfig({ secretsKey }));
const adoptedData = await synthesized(readConfig({ table: "Left", bucket: "left", secretsKey }));

/** Returns the resource for which the function has the right to this action. */
const resourceOf = ({ statementsOf }: Template, file: string, action: string): unknown =>
  at(
    statementsOf(file).find((statement) => listed(at(statement, "Action")).includes(action)),
    "Resource",
  );

it("an adopted table and bucket have no difference from new ones except their names", () => {
  const given = new Set(["TableName", "BucketName", "aws:asset:path"]);
  const text = (value: unknown) =>
    JSON.stringify(value, (key, part: unknown) => (given.has(key) && typeof part === "string" ? undefined : part));
  for (const stack of ["data", "service"] as const) {
    const [before, after] = [newData.stacks[stack], adoptedData.stacks[stack]];
    expect(Object.keys(after.Resources)).toEqual(Object.keys(before.Resources));
    const ids = Object.keys(before.Resources);
    expect(ids.filter((id) => text(after.Resources[id]) !== text(before.Resources[id]))).toEqual([]);
    expect(after.Outputs).toEqual(before.Outputs);
  }
});

it("an adopted secrets key is used unchanged, and the stack creates no key", () => {
  expect(JSON.stringify(newData.all("AWS::KMS::Key"))).not.toContain("webhook-secrets");
  expect(newData.variablesOf("events/deliver")).toMatchObject({ SECRETS_KEY_ARN: secretsKey });
  expect(resourceOf(newData, "events/deliver", "kms:Decrypt")).toBe(secretsKey);
});

it("an adopted user pool is the issuer and gets invitations; the stack neither makes nor changes a pool", async () => {
  const [userPool, userPoolClient] = ["eu-west-1_AbCdEfGhI", "1a2b3c4d5e"];
  const console = { console: true, signInPages: "false" };
  const adopted = await synthesized(readConfig({ ...console, userPool, userPoolClient, audience: "other" }));
  expect(adopted.all("AWS::Cognito::UserPool")).toEqual([]);
  expect(adopted.all("AWS::Cognito::UserPoolDomain")).toEqual([]);
  const clients = adopted.all("AWS::Cognito::UserPoolClient").map(({ id }) => id);
  expect(clients).toEqual([expect.stringMatching(/^ConsoleClient/)]);
  expect(adopted.variablesOf("users/create")).toMatchObject({ USER_POOL_ID: userPool });
  const variables = adopted.variablesOf("authorize");
  expect(variables).toMatchObject({ AUDIENCE: expect.stringMatching(`^${userPoolClient},other`) });
  const host = ["https://cognito-idp.", { Ref: "AWS::Region" }, ".", { Ref: "AWS::URLSuffix" }];
  expect(at(variables, "ISSUER")).toEqual({ "Fn::Join": ["", [...host, `/${userPool}`]] });
  expect(adopted.outputs.UserPoolId?.Value).toBe(userPool);
  const pool = resourceOf(adopted, "users/create", "cognito-idp:AdminCreateUser");
  expect(JSON.stringify(pool)).toContain(`:userpool/${userPool}"`);
});
