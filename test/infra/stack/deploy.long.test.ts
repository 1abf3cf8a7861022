/**
 * Deploys, updates, destroys and imports both stacks with the real command `cdk` and the commands in docs/deploy.md. By default, AWS is
 * simulated by a local endpoint with the rules of CloudFormation (test/harness/cloud). If `AWS_ENDPOINT_URL` is set, the endpoint at this
 * URL is used instead.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CloudFormationClient,
  DescribeStacksCommand,
  paginateDescribeStackEvents,
  paginateListStackResources,
  type Stack,
  type StackEvent,
} from "@aws-sdk/client-cloudformation";
import { GetBucketNotificationConfigurationCommand, S3Client } from "@aws-sdk/client-s3";
import { GetParameterCommand, ParameterNotFound, SSMClient } from "@aws-sdk/client-ssm";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import * as z from "zod/mini";
import { policyOf } from "../../../infra/security/people.ts";
import { ACCOUNT, REGION } from "../../harness/cloud/account.ts";
import {
  type Deployment,
  deploymentOf,
  documented,
  documentedContext,
  writeProfiles,
} from "../../harness/cloud/cdk-command.ts";
import { type LocalCloud, serveCloud } from "../../harness/cloud/server.ts";
import { at, listed } from "../template.ts";

const STAGE = "deploy-test";
const [SERVICE, DATA] = [`Canvassing-${STAGE}`, `Canvassing-${STAGE}-Data`];
const DEPLOYER = "operator";
const given = process.env.AWS_ENDPOINT_URL;

let local: LocalCloud | undefined;
let deployment: Deployment;
let cloudFormation: CloudFormationClient;
let s3: S3Client;
let ids: Readonly<Record<"data" | "service", string>>;
let settings: Record<string, string> = { alarmEmail: "operator@example.com" };

beforeAll(async () => {
  if (given === undefined) {
    local = await serveCloud();
    for (const [name, value] of Object.entries({
      AWS_ENDPOINT_URL: local.endpoint,
      AWS_REGION: "eu-west-1",
      AWS_ACCESS_KEY_ID: DEPLOYER,
      AWS_SECRET_ACCESS_KEY: "local",
    })) {
      vi.stubEnv(name, value);
    }
    const certificate = "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd";
    settings = { ...settings, domain: "api.example.com", certificate };
  }
  const aws = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("AWS_")));
  const directory = mkdtempSync(join(tmpdir(), "canvassing-deploy-"));
  if (local !== undefined) writeProfiles(directory, { account: ACCOUNT, region: REGION });
  deployment = deploymentOf(STAGE, directory, aws);
  // The last test checks that the deployer needs exactly its rights. The requests that this file sends itself must not count as requests of
  // the deployer, so they have another caller.
  const own = local === undefined ? {} : { credentials: { accessKeyId: "test", secretAccessKey: "local" } };
  cloudFormation = new CloudFormationClient(own);
  s3 = new S3Client({ forcePathStyle: true, ...own });
  if (given === undefined) return;
  if (await isBootstrapped()) return;
  // `cdk bootstrap` reads the account and the region from a synthesized app.
  deployment.synthesize(settings);
  await succeed("npx cdk bootstrap");
});
afterAll(() => {
  deployment.stop();
  local?.stop();
  vi.unstubAllEnvs();
});

/**
 * Returns true if the resources that `npx cdk bootstrap` creates exist at the endpoint. In the simulated CloudFormation, they always exist.
 */
async function isBootstrapped(): Promise<boolean> {
  const version = new GetParameterCommand({ Name: "/cdk-bootstrap/hnb659fds/version" });
  return new SSMClient().send(version).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ParameterNotFound) return false;
      throw error;
    },
  );
}

async function succeed(...commands: readonly string[]): Promise<void> {
  for (const command of commands) {
    const { code, output } = await deployment.run(command);
    expect(code, output.slice(-3_000)).toBe(0);
  }
}

async function stackOf(name: string): Promise<Stack> {
  const { Stacks } = await cloudFormation.send(new DescribeStacksCommand({ StackName: name }));
  const [stack] = Stacks ?? [];
  if (stack === undefined) throw new Error(`there is no stack ${name}`);
  return stack;
}

async function eventsOf(name: string): Promise<StackEvent[]> {
  const events: StackEvent[] = [];
  for await (const page of paginateDescribeStackEvents({ client: cloudFormation }, { StackName: name })) {
    events.push(...(page.StackEvents ?? []));
  }
  return events;
}

/** Returns the physical id of each resource of the stack, by its logical id. */
async function resourcesOf(name: string): Promise<Map<string, string>> {
  const resources = new Map<string, string>();
  for await (const page of paginateListStackResources({ client: cloudFormation }, { StackName: name })) {
    for (const { LogicalResourceId = "", PhysicalResourceId = "" } of page.StackResourceSummaries ?? []) {
      resources.set(LogicalResourceId, PhysicalResourceId);
    }
  }
  return resources;
}

/** Returns the events of the resources that CloudFormation retained when it deleted the stack. */
const retainedBy = async (stackId: string): Promise<StackEvent[]> =>
  (await eventsOf(stackId)).filter(({ ResourceStatus }) => ResourceStatus === "DELETE_SKIPPED");

const both = async <T>(read: (name: string) => Promise<T>): Promise<[T, T]> => [await read(DATA), await read(SERVICE)];

const outputOf = ({ Outputs = [] }: Stack, name: string): string =>
  Outputs.find(({ OutputKey }) => OutputKey === name)?.OutputValue ?? "";

/** Returns the name of the queue to which the bucket sends notifications. */
async function notifiedQueue(Bucket: string): Promise<string | undefined> {
  const { QueueConfigurations } = await s3.send(new GetBucketNotificationConfigurationCommand({ Bucket }));
  return QueueConfigurations?.[0]?.QueueArn?.split(":").at(-1);
}

const cdkOnly = (commands: readonly string[]): string[] =>
  commands.filter((command) => /^npx cdk (?!bootstrap)|^aws /.test(command));

it("the first deployment creates both stacks", async () => {
  deployment.synthesize(settings);
  const commands = cdkOnly(documented("Deploy, destroy, and adopt existing data"));
  expect(commands).toEqual(["npx cdk deploy Canvassing-Data", "npx cdk deploy --all"]);
  await succeed(...commands);
  const [data, service] = await both(stackOf);
  expect([data.StackStatus, service.StackStatus]).toEqual(["CREATE_COMPLETE", "CREATE_COMPLETE"]);
  expect(data.EnableTerminationProtection).toBe(true);
  ids = { data: data.StackId ?? "", service: service.StackId ?? "" };
  if (local !== undefined) expect(outputOf(service, "ApiUrl")).toBe("https://api.example.com");
});

it("a second deployment changes nothing", async () => {
  const before = await both(eventsOf);
  local?.cloudFormation.calls.splice(0);
  deployment.synthesize(settings);
  await succeed("npx cdk deploy --all");
  expect(await both(eventsOf)).toEqual(before);
  expect(local?.cloudFormation.calls ?? []).not.toContain("ExecuteChangeSet");
});

it("an update changes only the function whose code is new, with its version and its alias", async () => {
  const [before, [data, service]] = [await both(eventsOf), await both(resourcesOf)];
  deployment.changeCode("prospects/list");
  deployment.synthesize(settings);
  await succeed("npx cdk deploy --all");
  const events = await both(eventsOf);
  expect(events[0]).toEqual(before[0]);
  const changed = events[1]
    .slice(0, events[1].length - before[1].length)
    .map(({ LogicalResourceId = "" }) => LogicalResourceId);
  const kinds = changed.filter((id) => id !== SERVICE).map((id) => id.replace(/(?:[0-9A-F]{8})(?:[0-9a-f]{32})?$/, ""));
  expect([...new Set(kinds)].toSorted()).toEqual([
    "EndpointsProspectsListFunction",
    "EndpointsProspectsListFunctionCurrentVersion",
    "EndpointsProspectsListFunctionLive",
  ]);
  // All resources except the new version of the function have the same physical ids as before, so no resource was replaced.
  const others = (resources: ReadonlyMap<string, string>) =>
    new Map([...resources].filter(([id]) => !id.startsWith("EndpointsProspectsListFunctionCurrentVersion")));
  expect(await resourcesOf(DATA)).toEqual(data);
  expect(others(await resourcesOf(SERVICE))).toEqual(others(service));
});

it.skipIf(given !== undefined)("the documented change to the preset production keeps the address", async () => {
  const [deploy = "", ...more] = cdkOnly(documented("Concurrency"));
  expect(more).toEqual([]);
  const context = [...deploy.matchAll(/-c (\w+)=(\S+)/g)].map(([, key = "", value = ""]) => [key, value] as const);
  settings = { ...settings, ...Object.fromEntries(context) };
  deployment.synthesize(settings);
  await succeed(deploy);
  expect(outputOf(await stackOf(SERVICE), "ApiUrl")).toBe("https://api.example.com");
});

it("the service can be destroyed and deployed again with the same data and the same domain", async () => {
  const [data, service] = await both(resourcesOf);
  const target = outputOf(await stackOf(DATA), "DomainTarget");
  await succeed(...cdkOnly(documented("Destroy the service")));
  const gone = await stackOf(ids.service);
  expect(gone.StackStatus).toBe("DELETE_COMPLETE");
  expect(await retainedBy(ids.service)).toEqual([]);
  await succeed("npx cdk deploy --all");
  expect(await resourcesOf(DATA)).toEqual(data);
  const again = await resourcesOf(SERVICE);
  const api = [...again.keys()].find((id) => /^Api[0-9A-F]{8}$/.test(id)) ?? "";
  expect(again.get(api)).not.toBe(service.get(api));
  expect(outputOf(await stackOf(DATA), "DomainTarget")).toBe(target);
  if (local !== undefined) expect(outputOf(await stackOf(SERVICE), "ApiUrl")).toBe("https://api.example.com");
});

it("destroying everything retains exactly what the document lists", async () => {
  const { StackStatus } = await stackOf(DATA);
  const refused = await deployment.run("npx cdk destroy --all");
  expect(refused.code).toBe(1);
  expect(refused.output).toContain("TerminationProtection is enabled");
  expect((await stackOf(DATA)).StackStatus).toBe(StackStatus);
  await expect(stackOf(SERVICE)).rejects.toThrow("does not exist");
  await succeed(...cdkOnly(documented("Destroy the data stack")));
  expect((await stackOf(ids.data)).StackStatus).toBe("DELETE_COMPLETE");
  const kept = await retainedBy(ids.data);
  expect(kept.map(({ ResourceType }) => ResourceType).toSorted()).toEqual([
    "AWS::ApiGateway::Account",
    ...(local === undefined ? [] : ["AWS::ApiGateway::DomainName", "AWS::Backup::BackupVault"]),
    "AWS::Cognito::UserPool",
    "AWS::Cognito::UserPoolClient",
    "AWS::DynamoDB::Table",
    "AWS::IAM::Role",
    "AWS::KMS::Key",
    "AWS::S3::Bucket",
    "AWS::SQS::Queue",
    "AWS::SQS::Queue",
  ]);
  if (local === undefined) return;
  const left = local.account.resources.filter(({ owner }) => owner?.stackId !== "CDKToolkit");
  expect(left.map(({ id }) => id).toSorted()).toEqual(
    kept.map(({ PhysicalResourceId }) => PhysicalResourceId).toSorted(),
  );
});

it("a new deployment adopts them with the commands of the document", async () => {
  const retained = new Map(
    (await retainedBy(ids.data)).map(({ ResourceType = "", PhysicalResourceId = "" }) => [
      ResourceType,
      PhysicalResourceId,
    ]),
  );
  const of = (type: string): string => retained.get(type) ?? "";
  const [, , , region, account] = ids.data.split(":");
  const adopted: Record<string, string> = {
    table: of("AWS::DynamoDB::Table"),
    bucket: of("AWS::S3::Bucket"),
    secretsKey: `arn:aws:kms:${region}:${account}:key/${of("AWS::KMS::Key")}`,
    userPool: of("AWS::Cognito::UserPool"),
    userPoolClient: of("AWS::Cognito::UserPoolClient"),
  };
  expect(documentedContext("Adopt existing data")).toEqual(Object.keys(adopted));
  const oldQueue = await notifiedQueue(adopted.bucket ?? "");
  deployment.synthesize({ ...settings, ...adopted });

  const [adopt = "", revert = "", ...more] = cdkOnly(documented("Adopt existing data"));
  expect(more).toEqual([]);
  const refused = await deployment.run(adopt.replace(" --import-existing-resources", ""));
  expect(refused.output).toContain("already exists");
  expect((await stackOf(DATA)).StackStatus).toBe("ROLLBACK_COMPLETE");
  const [unprotect = ""] = cdkOnly(documented("Destroy the data stack"));
  await succeed(unprotect);

  await succeed(adopt);
  const data = await resourcesOf(DATA);
  expect([...data.values()]).toEqual(expect.arrayContaining([adopted.table, adopted.bucket]));
  const service = await stackOf(SERVICE);
  expect(outputOf(service, "TableName")).toBe(adopted.table);
  expect(outputOf(service, "BucketName")).toBe(adopted.bucket);
  expect(outputOf(service, "UserPoolId")).toBe(adopted.userPool);
  expect(outputOf(service, "SecretsKeyArn")).toBe(adopted.secretsKey);
  if (local !== undefined) expect([...data.values()]).toContain("api.example.com");

  // After the import, the bucket still sends its notifications to the queue of the earlier deployment. The second documented command
  // (`revert`) corrects this.
  expect(await notifiedQueue(adopted.bucket ?? "")).toBe(oldQueue);
  const [, , drift = "", again = ""] = documented("No copy for two days", "docs/runbook.md");
  expect(again).toBe(revert);
  if (local !== undefined) {
    expect((await deployment.run(drift)).output).toMatch(/AWS::S3::Bucket Files.*\/NotificationConfiguration/s);
  }
  await succeed(revert);
  if (local !== undefined) expect((await deployment.run(drift)).output).toContain("No drift detected");
  const [, queue] = [...data].find(([id]) => id.startsWith("ImportsQueue") && !id.includes("Policy")) ?? [];
  expect(queue).toBeDefined();
  expect(queue).toContain(await notifiedQueue(adopted.bucket ?? ""));
  expect(await notifiedQueue(adopted.bucket ?? "")).not.toBe(oldQueue);

  const before = await both(eventsOf);
  await succeed("npx cdk deploy --all");
  expect(await both(eventsOf)).toEqual(before);
});

/**
 * The roles of `cdk bootstrap` use these managed policies of AWS. For each policy, the list contains the CloudFormation actions that it
 * allows.
 */
const managed: Readonly<Record<string, readonly string[]>> = {
  AWSCloudFormationReadOnlyAccess: [
    "Describe*",
    "Detect*",
    "EstimateTemplateCost",
    "Get*",
    "List*",
    "ValidateTemplate",
  ],
  ReadOnlyAccess: ["Describe*", "Detect*", "EstimateTemplateCost", "Get*", "List*", "ValidateTemplate"],
};

const isAllowed = (patterns: readonly string[], action: string): boolean =>
  patterns.some((pattern) => new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(action));

/**
 * Returns the actions that the template of `cdk bootstrap` allows each of its roles. The keys are parts of the roles' names, for example
 * `deploy`.
 */
async function rightsOfRoles(): Promise<Map<string, string[]>> {
  const { output } = await deployment.run("npx cdk bootstrap --show-template --json");
  const Template = z.object({ Resources: z.record(z.string(), z.object({ Properties: z.optional(z.unknown()) })) });
  const { Resources } = z.parse(Template, JSON.parse(output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1)));
  const policies = Object.values(Resources).map(({ Properties }) => Properties);
  const roles = Object.entries(Resources).flatMap(([id, { Properties }]) => {
    const [, name] = /-([a-z]+(?:-[a-z]+)?)-role-/.exec(String(at(Properties, "RoleName", "Fn::Sub"))) ?? [];
    return name === undefined ? [] : [{ id, name, properties: Properties }];
  });
  return new Map(
    roles.map(({ id, name, properties }) => {
      const attached = policies.filter((policy) => JSON.stringify(at(policy, "Roles") ?? "").includes(`"${id}"`));
      const inline = listed(at(properties, "Policies"));
      const statements = [...inline, ...attached].flatMap((policy) =>
        listed(at(policy, "PolicyDocument", "Statement")),
      );
      const own = statements
        .filter((statement) => at(statement, "Effect") === "Allow")
        .flatMap((statement) => [at(statement, "Action")].flat().map(String));
      const ofAws = Object.entries(managed)
        .filter(([policy]) => JSON.stringify(properties).includes(`:policy/${policy}"`))
        .flatMap(([, actions]) => actions.map((action) => `cloudformation:${action}`));
      return [name, [...own, ...ofAws]];
    }),
  );
}

it.skipIf(given !== undefined)(
  "all these commands used exactly the rights of the deployer and no others of the roles",
  async () => {
    const used = new Map(local?.used);
    used.delete("test");
    // AWS allows `sts:GetCallerIdentity` to everybody, so the deployer needs no right for it.
    const deployer = [...(used.get(DEPLOYER) ?? [])].filter((action) => action !== "sts:GetCallerIdentity");
    used.delete(DEPLOYER);
    const allowed = policyOf("deployer").Statement.flatMap(({ Action }) => Action);
    // The other rights of the deployer are for `aws` commands that this file does not run, such as the command that finds the API of a
    // deployment with its own domain name. people.deep.test.ts tests that these commands need the rights.
    const ofCdk = allowed.filter((action) => /^(?:sts|cloudformation):(?!DescribeStackResources$)/.test(action));
    expect(deployer.toSorted()).toEqual(ofCdk.toSorted());

    const roles = await rightsOfRoles();
    const named = new Map(
      [...used].map(([caller, actions]) => [/^cdk-hnb659fds-(.+)-role-/.exec(caller)?.[1], actions]),
    );
    expect([...named.keys()].toSorted()).toEqual(["deploy", "file-publishing", "lookup"]);
    for (const [role = "", actions] of named) {
      const refused = [...actions].filter((action) => !isAllowed(roles.get(role) ?? [], action));
      expect(
        refused.filter((action) => action !== "sts:GetCallerIdentity"),
        role,
      ).toEqual([]);
    }
  },
);
