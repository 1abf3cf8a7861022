/**
 * Tests what CloudFormation does with the templates: several deployments in one account, failed deployments, changes that would lose data,
 * and a domain name that moves to another API. test/harness/cloud simulates the account according to AWS's documentation.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { GetParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { beforeAll, describe, expect, it } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { type Account, bootstrappedAccount, type Made } from "../../harness/cloud/account.ts";
import { type CloudFormation, openCloudFormation } from "../../harness/cloud/cloudformation.ts";
import type { Stack } from "../../harness/cloud/stack-state.ts";
import { deployText, type StackTexts, textsOf } from "../../harness/cloud/stack-templates.ts";
import { destroy } from "../../harness/cloud/stacks.ts";
import { neededBy, readTemplate } from "../../harness/cloud/template.ts";
import { synthesized } from "../template.ts";

const certificate = "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd";
const owned = { alarmEmail: "operator@example.com", domain: "api.example.com", certificate };

async function texts(context: Readonly<Record<string, unknown>>): Promise<StackTexts> {
  const config = readConfig(context);
  return textsOf(await synthesized(config), config);
}

let first: StackTexts;
beforeAll(async () => {
  first = await texts(owned);
});

let cloud: CloudFormation;
const fresh = (): Account => {
  cloud = openCloudFormation(bootstrappedAccount());
  return cloud.account;
};

const statuses = () => Object.fromEntries(cloud.stacks.map(({ name, status }) => [name, status]));
/** Returns the resources in the account, without those that `cdk bootstrap` has created. */
const existing = ({ resources }: Account): Made[] => resources.filter(({ owner }) => owner?.stackId !== "CDKToolkit");
const idsOf = (stack: Stack) => new Map([...stack.resources].map(([id, { made }]) => [id, made.id]));

function deployed({ data, service }: StackTexts, name = "Canvassing"): { data: Stack; service: Stack } {
  return { data: deployText(cloud, `${name}-Data`, data), service: deployText(cloud, name, service) };
}

describe("deployments with and without a stage", () => {
  it("exist side by side in one account, also with reserved concurrency", async () => {
    fresh();
    deployed(first);
    for (const stage of ["test", "demo"]) {
      const preset = { stage, preset: "production", alarmEmail: owned.alarmEmail };
      deployed(await texts(preset), `Canvassing-${stage}`);
    }
    expect(Object.values(statuses())).toEqual(Array.from({ length: 6 }, () => "CREATE_COMPLETE"));
  });
});

describe("a new account, in which a function may have 3 008 MB", () => {
  it.each([
    [{ preset: "production" }, "ROLLBACK_COMPLETE"],
    [{ preset: "production", listMemory: "3008" }, "CREATE_COMPLETE"],
    [{ preset: "small" }, "CREATE_COMPLETE"],
  ])("with %j ends with %s", async (context, status) => {
    const account = fresh();
    account.functionMemoryMb = 3_008;
    const { service } = deployed(await texts({ alarmEmail: owned.alarmEmail, ...context }));
    expect(service.status).toBe(status);
    const failed = service.events.find(({ ResourceStatus }) => ResourceStatus === "CREATE_FAILED");
    if (status === "ROLLBACK_COMPLETE") expect(failed?.ResourceStatusReason).toContain("'MemorySize' value failed");
  });
});

describe("a failed first deployment", () => {
  const sesIdentity = "arn:aws:ses:eu-west-1:123456789012:identity/example.com";
  const inAccount = ["AWS::ApiGateway::Account", "AWS::IAM::Role"];

  it("leaves only the account's role for logs, if SES does not know the sender", async () => {
    const account = fresh();
    const { data } = await texts({ ...owned, mailFrom: "no-reply@example.com", sesIdentity });
    const stack = deployText(cloud, "Canvassing-Data", data);
    expect(stack.status).toBe("ROLLBACK_COMPLETE");
    expect(stack.events.find(({ ResourceStatus }) => ResourceStatus === "CREATE_FAILED")).toMatchObject({
      ResourceType: "AWS::Cognito::UserPool",
      ResourceStatusReason: "Email address is not verified: example.com",
    });
    expect(existing(account).filter(({ type }) => !inAccount.includes(type))).toEqual([]);
  });

  it("leaves nothing else wherever it fails, because the protected resources come last", async () => {
    const production = await texts({ ...owned, preset: "production" });
    const { Resources } = readTemplate(production.data, true);
    const left = Object.keys(Resources).flatMap((id) => {
      const account = fresh();
      account.failing.add(id);
      const { status } = deployText(cloud, "Canvassing-Data", production.data);
      const kept = existing(account).filter(({ type }) => !inAccount.includes(type));
      return status === "ROLLBACK_COMPLETE" && kept.length === 0 ? [] : [id];
    });
    // A protected user pool cannot be deleted, so a failure after its creation leaves it behind. Only the resources in this pattern may be
    // created after the user pool, because they need the user pool or the table.
    const after = /^(?:UserPoolClient|Table|BackupsPlanTable)[0-9A-F]{8}$/;
    expect(left.filter((id) => !after.test(id))).toEqual([]);
    const before = new Set<string>();
    const visit = (id: string): void => {
      for (const other of neededBy(Resources, id)) if (!before.has(other)) visit(before.add(other) && other);
    };
    visit(Object.keys(Resources).find((id) => Resources[id]?.Type === "AWS::Cognito::UserPool") ?? "");
    // CloudFormation creates two resources in parallel, unless one of them depends on the other. A resource on which the user pool does not
    // depend could therefore fail after the user pool exists.
    const unordered = Object.keys(Resources).filter((id) => !before.has(id) && !after.test(id));
    expect(unordered, "name a new resource in createProtectedLast").toEqual([expect.stringMatching(/^UserPool/)]);
  });
});

describe("a failed first deployment of the service", () => {
  it("leaves nothing wherever it fails, because the pages, which fill a bucket, are copied last and after their assets", async () => {
    const account = fresh();
    const { data, service } = await texts({ ...owned, preset: "production", console: "true" });
    deployText(cloud, "Canvassing-Data", data);
    const template = readTemplate(service, true);
    const left = Object.keys(template.Resources).filter((id) => {
      const before = existing(account).length;
      account.failing.add(id);
      const { status } = deployText(cloud, "Canvassing", service, { template });
      account.failing.delete(id);
      return status !== "ROLLBACK_COMPLETE" || existing(account).length > before;
    });
    expect(left).toEqual([expect.stringMatching(/^ConsoleDocumentsCustomResource/)]);
  });
});

describe("a change that would lose data", () => {
  it("is refused while the service uses the data: another table", async () => {
    fresh();
    const { data } = deployed(first);
    const before = idsOf(data);
    const secretsKey = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";
    const other = await texts({ ...owned, table: "Other", secretsKey });
    deployText(cloud, "Canvassing-Data", other.data);
    expect(data.status).toBe("UPDATE_ROLLBACK_COMPLETE");
    expect(data.events.find(({ ResourceStatus }) => ResourceStatus === "UPDATE_ROLLBACK_IN_PROGRESS")).toMatchObject({
      ResourceStatusReason: expect.stringMatching(
        /^Export \S+Table\S+ cannot be updated as it is in use by Canvassing$/,
      ),
    });
    expect(idsOf(data)).toEqual(before);
  });

  it("is refused while the service uses the data: the end of the data stack", () => {
    const account = fresh();
    const { data } = deployed(first);
    const before = existing(account).length;
    destroy(cloud, data);
    expect(data).toMatchObject({ status: "DELETE_FAILED", reason: expect.stringContaining("in use by Canvassing") });
    expect(existing(account)).toHaveLength(before);
  });
});

describe("a domain", () => {
  const mapping = (account: Account) =>
    existing(account).find(({ type }) => type === "AWS::ApiGateway::BasePathMapping");

  it("follows the API to a new id without an interruption", () => {
    const account = fresh();
    const { service } = deployed(first);
    const before = mapping(account);
    const api = before?.properties.RestApiId;
    const mappingId = before?.id;
    // CloudFormation creates a new API and deletes the old one if the logical id changes.
    deployText(cloud, "Canvassing", first.service.replaceAll("ApiF70053CD", "ApiNew"));
    expect(service.status).toBe("UPDATE_COMPLETE");
    expect(mapping(account)?.properties.RestApiId).not.toBe(api);
    expect(mapping(account)?.id).toBe(mappingId);
  });

  it("can be changed and given up; API Gateway keeps the old name until the operator deletes it", async () => {
    const account = fresh();
    deployed(first);
    deployed(await texts({ ...owned, domain: "other.example.com" }));
    expect(mapping(account)?.properties.DomainName).toBe("other.example.com");
    deployed(await texts({ alarmEmail: owned.alarmEmail }));
    expect(mapping(account)).toBeUndefined();
    expect(statuses()).toEqual({ "Canvassing-Data": "UPDATE_COMPLETE", Canvassing: "UPDATE_COMPLETE" });
    const names = existing(account).filter(({ type }) => type === "AWS::ApiGateway::DomainName");
    expect(names.map(({ id, owner }) => [id, owner])).toEqual([
      ["api.example.com", undefined],
      ["other.example.com", undefined],
    ]);
  });
});

describe("the sign-in pages of the console", () => {
  const owner = { alarmEmail: owned.alarmEmail, console: "true" };
  const domains = (account: Account) => existing(account).filter(({ type }) => type === "AWS::Cognito::UserPoolDomain");
  const poolsWithPages = (account: Account) => domains(account).map(({ properties }) => properties.UserPoolId);
  const idOf = (account: Account, type: string, stack: Stack): string =>
    existing(account).find((made) => made.type === type && made.owner?.stackId === stack.id)?.id ?? "";

  /** Deploys, destroys both stacks, and returns the ids of the user pool and of its client, which remain. */
  async function leftBehind(account: Account) {
    const { data, service } = deployed(await texts(owner));
    const userPool = idOf(account, "AWS::Cognito::UserPool", data);
    const userPoolClient = idOf(account, "AWS::Cognito::UserPoolClient", data);
    destroy(cloud, service);
    destroy(cloud, data);
    expect([service.status, data.status]).toEqual(["DELETE_COMPLETE", "DELETE_COMPLETE"]);
    expect(poolsWithPages(account)).toEqual([]);
    return { userPool, userPoolClient };
  }

  it("stay the same when the deployment changes, and are created again after a destroy, which leaves only the bucket of the console", async () => {
    const account = fresh();
    const { data, service } = deployed(await texts(owner));
    const pool = idOf(account, "AWS::Cognito::UserPool", data);
    const before = domains(account);
    expect(poolsWithPages(account)).toEqual([pool]);
    deployed(await texts({ ...owner, preset: "production" }));
    expect(service.status).toBe("UPDATE_COMPLETE");
    expect(domains(account)).toEqual(before);
    destroy(cloud, service);
    const retained = service.events.filter(({ ResourceStatus }) => ResourceStatus === "DELETE_SKIPPED");
    expect(retained.map(({ PhysicalResourceId }) => PhysicalResourceId)).toEqual([
      expect.stringMatching(/^canvassing-consolepages/),
    ]);
    expect(deployed(await texts(owner)).service.status).toBe("CREATE_COMPLETE");
    expect(poolsWithPages(account)).toEqual([pool]);
  });

  it("exist again after both stacks were destroyed and the user pool was adopted", async () => {
    const account = fresh();
    const left = await leftBehind(account);
    const { service } = deployed(await texts({ ...owner, ...left, signInPages: "true" }));
    expect(service.status).toBe("CREATE_COMPLETE");
    expect(poolsWithPages(account)).toEqual([left.userPool]);
  });

  it("exist for a new user pool, after both stacks were destroyed", async () => {
    const account = fresh();
    const left = await leftBehind(account);
    const { data, service } = deployed(await texts(owner));
    expect(service.status).toBe("CREATE_COMPLETE");
    expect(poolsWithPages(account)).toEqual([idOf(account, "AWS::Cognito::UserPool", data)]);
    expect(poolsWithPages(account)).not.toContain(left.userPool);
  });

  it("of an adopted user pool stay if it already has some, and a deployment with a second domain is undone", async () => {
    const account = fresh();
    const left = await leftBehind(account);
    const own: Made = {
      type: "AWS::Cognito::UserPoolDomain",
      id: `${left.userPool}|acme`,
      properties: { UserPoolId: left.userPool, Domain: "acme" },
      owner: undefined,
    };
    account.resources.push(own);
    const { service } = deployed(await texts({ ...owner, ...left, signInPages: "false" }));
    expect(service.status).toBe("CREATE_COMPLETE");
    expect(domains(account)).toEqual([own]);
    deployed(await texts({ ...owner, ...left, signInPages: "true" }));
    expect(service.status).toBe("UPDATE_ROLLBACK_COMPLETE");
    expect(service.events.map(({ ResourceStatusReason }) => ResourceStatusReason)).toContain(
      "User pool already has a domain configured.",
    );
    expect(domains(account)).toEqual([own]);
  });

  it("of an adopted user pool need the setting signInPages, and the error comes before anything is deployed", () => {
    const adopted = { userPool: "eu-west-1_AbCdEfGhI", userPoolClient: "1a2b3c4d5e" };
    expect(() => readConfig({ ...owner, ...adopted })).toThrow(
      "context key signInPages: needed with console and userPool",
    );
    expect(() => readConfig({ ...owner, signInPages: "true" })).toThrow("context key signInPages: needs userPool");
    expect(() => readConfig({ signInPages: "true" })).toThrow("context key signInPages: needs console");
  });
});

describe("the simulated CloudFormation refuses what AWS refuses", () => {
  const queue = { Type: "AWS::SQS::Queue" };
  const roleFor = (Resource: string) => {
    const statement = { Effect: "Allow", Action: "sqs:SendMessage", Resource };
    const policy = { PolicyName: "send", PolicyDocument: { Version: "2012-10-17", Statement: [statement] } };
    return { Type: "AWS::IAM::Role", Properties: { AssumeRolePolicyDocument: {}, Policies: [policy] } };
  };
  const text = (Resources: object, more: object = {}) => JSON.stringify({ Resources, ...more });

  it.each([
    [{ A: { ...queue, DependsOn: "B" } }, "Unresolved resource dependencies [B]"],
    [
      { A: queue, B: { ...queue, Properties: { QueueName: { "Fn::GetAtt": ["A", "Name"] } } } },
      "does not support attribute type Name",
    ],
    [
      { A: { ...queue, DependsOn: "B" }, B: { ...queue, DependsOn: "A" } },
      "Circular dependency between resources: [A, B]",
    ],
    [{ A: { Type: "AWS::SQS::Que" } }, "Unrecognized resource types: [AWS::SQS::Que]"],
    [{ A: { ...queue, Deletion: "Retain" } }, "Template format error"],
    [Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`Q${i}`, queue])), "501, is greater than 500"],
    [{ A: { ...queue, Properties: { QueueName: "x".repeat(1_000_000) } } }, "exceeds the maximum of 1000000"],
  ])("%# as a template", (resources, fault) => {
    expect(() => readTemplate(text(resources), true)).toThrow(fault);
  });

  it.each([
    [{ A: { ...queue, Properties: { Color: "red" } } }, "Encountered unsupported property Color"],
    [{ A: { ...queue, Properties: { DelaySeconds: "soon" } } }, "DelaySeconds must be of type Number"],
    [{ A: { Type: "AWS::DynamoDB::Table" } }, "Property KeySchema is required"],
    [{ A: queue, B: { ...queue, Properties: { QueueName: { "Fn::ImportValue": "X" } } } }, "No export named X found"],
    [
      { A: { ...queue, Properties: { QueueName: "a" } }, B: { ...queue, Properties: { QueueName: "a" } } },
      "already exists",
    ],
    [{ A: roleFor("queue".repeat(2_100)) }, "Maximum policy size of 10240 bytes exceeded"],
  ])("%# as a deployment, which leaves nothing", (resources, fault) => {
    const account = fresh();
    const { status, events } = deployText(cloud, "S", text(resources));
    expect(status).toBe("ROLLBACK_COMPLETE");
    expect(events.some(({ ResourceStatusReason }) => ResourceStatusReason?.includes(fault))).toBe(true);
    expect(existing(account)).toEqual([]);
  });

  it("two keys of a usage plan that are added at the same time, because neither depends on the other", () => {
    const plan = { Type: "AWS::ApiGateway::UsagePlan" };
    const member = (key: string, more: object = {}) => ({
      Type: "AWS::ApiGateway::UsagePlanKey",
      Properties: { KeyId: key, KeyType: "API_KEY", UsagePlanId: { Ref: "Plan" } },
      ...more,
    });
    fresh();
    const parallel = deployText(cloud, "Parallel", text({ Plan: plan, A: member("a"), B: member("b") }));
    expect(parallel.status).toBe("ROLLBACK_COMPLETE");
    expect(parallel.events.some(({ ResourceStatusReason }) => /concurrent mod/.test(ResourceStatusReason ?? ""))).toBe(
      true,
    );
    const ordered = { Plan: plan, A: member("a"), Queue: { ...queue, DependsOn: "A" } };
    const chain = { ...ordered, B: member("b", { DependsOn: "Queue" }) };
    expect(deployText(cloud, "Chain", text(chain)).status).toBe("CREATE_COMPLETE");
  });

  it("an export that another stack exports, and a named resource that must be replaced", () => {
    fresh();
    const exporting = { Outputs: { A: { Value: "1", Export: { Name: "same" } } } };
    deployText(cloud, "First", text({ A: { ...queue, Properties: { QueueName: "a" } } }, exporting));
    expect(deployText(cloud, "Second", text({ A: queue }, exporting)).status).toBe("ROLLBACK_COMPLETE");
    const fifo = text({ A: { ...queue, Properties: { QueueName: "a", FifoQueue: true } } }, exporting);
    const { events, status } = deployText(cloud, "First", fifo);
    expect(status).toBe("UPDATE_ROLLBACK_COMPLETE");
    expect(events.some(({ ResourceStatusReason }) => ResourceStatusReason?.includes("custom-named"))).toBe(true);
  });
});

it("the simulated account also runs as a process of its own, for AWS_ENDPOINT_URL", async () => {
  const child = spawn(process.execPath, [join(root, "test/harness/cloud/main.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [printed] = await once(child.stdout, "data");
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const ssm = new SSMClient({ endpoint: String(printed).trim(), region: "eu-west-1", credentials });
    const { Parameter } = await ssm.send(new GetParameterCommand({ Name: "/cdk-bootstrap/hnb659fds/version" }));
    expect(Number(Parameter?.Value)).toBeGreaterThan(0);
  } finally {
    child.kill();
  }
});
