/**
 * Tests what CloudFormation does with the templates: failed deployments, changes that would lose data, and the sign-in pages of a user pool
 * that outlives its stack. test/harness/cloud simulates CloudFormation according to AWS's documentation.
 */
import { describe, expect, it } from "vitest";
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

const first = await texts(owned);

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

describe("a failed first deployment", () => {
  const inAccount = ["AWS::ApiGateway::Account", "AWS::IAM::Role"];

  it("leaves only the account's role for logs wherever it fails, because the protected resources come last", async () => {
    const production = await texts({ ...owned, preset: "production" });
    const { Resources } = readTemplate(production.data);
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

it("a domain can be changed and given up; API Gateway keeps the old name until the operator deletes it", async () => {
  const account = fresh();
  const mapping = () => existing(account).find(({ type }) => type === "AWS::ApiGateway::BasePathMapping");
  deployed(first);
  deployed(await texts({ ...owned, domain: "other.example.com" }));
  expect(mapping()?.properties.DomainName).toBe("other.example.com");
  deployed(await texts({ alarmEmail: owned.alarmEmail }));
  expect(mapping()).toBeUndefined();
  expect(statuses()).toEqual({ "Canvassing-Data": "UPDATE_COMPLETE", Canvassing: "UPDATE_COMPLETE" });
  const names = existing(account).filter(({ type }) => type === "AWS::ApiGateway::DomainName");
  expect(names.map(({ id, owner }) => [id, owner])).toEqual([
    ["api.example.com", undefined],
    ["other.example.com", undefined],
  ]);
});

describe("the sign-in pages of the console", () => {
  const owner = { alarmEmail: owned.alarmEmail, console: "true" };
  const domains = (account: Account) => existing(account).filter(({ type }) => type === "AWS::Cognito::UserPoolDomain");
  const poolsWithPages = (account: Account) => domains(account).map(({ properties }) => properties.UserPoolId);
  const idOf = (account: Account, type: string, stack: Stack): string =>
    existing(account).find((made) => made.type === type && made.owner?.stackId === stack.id)?.id ?? "";

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
    const { data, service } = deployed(await texts(owner));
    const userPool = idOf(account, "AWS::Cognito::UserPool", data);
    const userPoolClient = idOf(account, "AWS::Cognito::UserPoolClient", data);
    destroy(cloud, service);
    destroy(cloud, data);
    expect([service.status, data.status]).toEqual(["DELETE_COMPLETE", "DELETE_COMPLETE"]);
    expect(poolsWithPages(account)).toEqual([]);
    const again = deployed(await texts({ ...owner, userPool, userPoolClient, signInPages: "true" }));
    expect(again.service.status).toBe("CREATE_COMPLETE");
    expect(poolsWithPages(account)).toEqual([userPool]);
  });
});
