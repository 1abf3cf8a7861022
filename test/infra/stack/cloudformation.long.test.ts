/** Tests what a simulated CloudFormation does with the templates when the documented commands deploy, destroy and adopt the stacks. */
import { describe, expect, it } from "vitest";
import { readConfig } from "../../../infra/settings/config.ts";
import type { Made } from "../../harness/cloud/account.ts";
import { documented, documentedSettings, newOperator } from "../../harness/cloud/operator.ts";
import { deployStack, liveStack, newCloud, type Stack } from "../../harness/cloud/stacks.ts";
import { allNeededBy } from "../../harness/cloud/template.ts";
import { at, listed, synthesized } from "../template.ts";

const [DATA, SERVICE] = ["Canvassing-Data", "Canvassing"] as const;
const alarmEmail = "operator@example.com";
const secretsKey = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const certificate = "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd";
const owned = { alarmEmail, domain: "api.example.com", certificate };

const deployment = documented("Deploy, destroy, and adopt existing data");
const [destroyService = "", ...none] = documented("Destroy the service");
const [unprotect = "", destroyData = ""] = documented("Destroy the data stack");

/** Returns an operator who has deployed both stacks with these settings. */
async function deployed(settings: Readonly<Record<string, unknown>>) {
  const operator = newOperator(settings);
  await operator.run(...deployment);
  return operator;
}
type Operator = Awaited<ReturnType<typeof deployed>>;

const ofType = ({ cloud }: Operator, type: string): Made[] =>
  cloud.account.resources.filter((made) => made.type === type);
const idsOf = ({ resources }: Stack) => new Map([...resources].map(([id, { made }]) => [id, made.id]));
const outputOf = ({ outputs }: Stack, name: string) => outputs.find((output) => output.name === name)?.value;
const retainedBy = ({ events }: Stack): Made[] =>
  events.flatMap(({ made, status }) => (made !== undefined && status === "DELETE_SKIPPED" ? [made] : []));

describe("a failed first deployment", () => {
  it("leaves only the account's role for logs wherever it fails, because the protected resources come last", async () => {
    const inAccount = ["AWS::ApiGateway::Account", "AWS::IAM::Role"];
    const { stacks } = await synthesized(readConfig({ ...owned, preset: "production" }));
    const { Resources } = stacks.data;
    const left = Object.keys(Resources).filter((id) => {
      const cloud = newCloud();
      cloud.account.failing.add(id);
      expect(() => deployStack(cloud, DATA, stacks.data)).toThrow("The service is unavailable");
      const kept = cloud.account.resources.filter(({ type }) => !inAccount.includes(type));
      return liveStack(cloud, DATA)?.status !== "ROLLBACK_COMPLETE" || kept.length > 0;
    });
    // CloudFormation creates these resources after the user pool. If one fails, the user pool stays, because it is protected from deletion.
    const after = /^(?:UserPoolClient|Table|BackupsPlanTable)[0-9A-F]{8}$/;
    expect(left.filter((id) => !after.test(id))).toEqual([]);
    const userPool = Object.keys(Resources).find((id) => Resources[id]?.Type === "AWS::Cognito::UserPool") ?? "";
    const before = allNeededBy(Resources, userPool);
    // CloudFormation creates independent resources in parallel, so a resource that the user pool does not need could fail after it.
    const unordered = Object.keys(Resources).filter((id) => !before.has(id) && !after.test(id));
    expect(unordered, "name a new resource in createProtectedLast").toEqual([userPool]);
  });
});

describe("a change that would lose data", () => {
  it("is refused while the service uses the data: another table", async () => {
    const { configure, run, stackOf } = await deployed(owned);
    const before = idsOf(stackOf(DATA));
    configure({ ...owned, table: "Other", secretsKey });
    await expect(run("npx cdk deploy --all")).rejects.toThrow(
      /UPDATE_ROLLBACK_COMPLETE: Export \S+Table\S+ cannot be updated as it is in use by Canvassing$/,
    );
    expect(idsOf(stackOf(DATA))).toEqual(before);
  });

  it("is refused while the service uses the data: the end of the data stack", async () => {
    const { cloud, run } = await deployed(owned);
    const before = [...cloud.account.resources];
    await expect(run("npx cdk destroy Canvassing-Data")).rejects.toThrow("TerminationProtection is enabled");
    await expect(run(unprotect, destroyData)).rejects.toThrow("in use by Canvassing");
    expect(cloud.account.resources).toEqual(before);
  });
});

it("a domain can be changed and given up; API Gateway keeps the old name until the operator deletes it", async () => {
  const operator = await deployed(owned);
  const mapped = () =>
    ofType(operator, "AWS::ApiGateway::BasePathMapping").map(({ properties }) => properties.DomainName);
  operator.configure({ ...owned, domain: "other.example.com" });
  await operator.run("npx cdk deploy --all");
  expect(mapped()).toEqual(["other.example.com"]);
  operator.configure({ alarmEmail });
  await operator.run("npx cdk deploy --all");
  expect(mapped()).toEqual([]);
  const names = ofType(operator, "AWS::ApiGateway::DomainName");
  expect(names.map(({ id, stackId }) => [id, stackId])).toEqual([
    ["api.example.com", undefined],
    ["other.example.com", undefined],
  ]);
});

it("the preset production, and a new deployment after the end of the service, keep the data and the address", async () => {
  const { run, stackOf } = await deployed(owned);
  const [ids, address] = [idsOf(stackOf(DATA)), outputOf(stackOf(DATA), "DomainTarget")];
  const [production = ""] = documented("Concurrency");
  expect(production).toMatch(/^npx cdk deploy --all -c preset=production /);
  await run(production);
  expect(none).toEqual([]);
  await run(destroyService);
  expect(stackOf(SERVICE).resources).toEqual(new Map());
  expect(retainedBy(stackOf(SERVICE))).toEqual([]);
  await run("npx cdk deploy --all");
  for (const [id, made] of ids) expect(idsOf(stackOf(DATA)).get(id), id).toBe(made);
  expect(outputOf(stackOf(DATA), "DomainTarget")).toBe(address);
  expect(outputOf(stackOf(SERVICE), "ApiUrl")).toBe("https://api.example.com");
});

describe("the sign-in pages of the console", () => {
  const settings = { alarmEmail, console: "true" };
  const poolsWithPages = (operator: Operator) =>
    ofType(operator, "AWS::Cognito::UserPoolDomain").map(({ properties }) => properties.UserPoolId);
  const idsOfType = (operator: Operator, type: string) => ofType(operator, type).map(({ id }) => id);

  it("stay the same when the deployment changes, and are created again after a destroy, which leaves only the bucket of the console", async () => {
    const operator = await deployed(settings);
    const pools = idsOfType(operator, "AWS::Cognito::UserPool");
    const before = ofType(operator, "AWS::Cognito::UserPoolDomain");
    expect(poolsWithPages(operator)).toEqual(pools);
    await operator.run("npx cdk deploy --all -c preset=production");
    expect(ofType(operator, "AWS::Cognito::UserPoolDomain")).toEqual(before);
    await operator.run(destroyService);
    expect(retainedBy(operator.stackOf(SERVICE)).map(({ id }) => id)).toEqual([
      expect.stringMatching(/^canvassing-consolepages/),
    ]);
    await operator.run("npx cdk deploy --all");
    expect(poolsWithPages(operator)).toEqual(pools);
  });

  it("exist again after both stacks were destroyed and the user pool was adopted", async () => {
    const operator = await deployed(settings);
    const [userPool = ""] = idsOfType(operator, "AWS::Cognito::UserPool");
    const { UserPoolClientId: userPoolClient } = Object.fromEntries(
      operator.stackOf(SERVICE).outputs.map(({ name, value }) => [name, value]),
    );
    await operator.run(destroyService, unprotect, destroyData);
    expect(poolsWithPages(operator)).toEqual([]);
    operator.configure({ ...settings, userPool, userPoolClient, signInPages: "true" });
    await operator.run(...deployment);
    expect(poolsWithPages(operator)).toEqual([userPool]);
  });
});

describe("the end of both stacks", async () => {
  const operator = await deployed({ ...owned, preset: "production" });
  await operator.run(destroyService, unprotect, destroyData);
  const left = retainedBy(operator.stackOf(DATA));

  /** Returns the name of the queue to which the bucket sends notifications. */
  const notified = (bucket: Made | undefined): string => {
    const [rule] = listed(at(bucket?.properties, "NotificationConfiguration", "QueueConfigurations"));
    return String(at(rule, "Queue")).split(":").at(-1) ?? "";
  };

  it("retains exactly what the document lists", () => {
    expect(left.map(({ type }) => type).toSorted()).toEqual([
      "AWS::ApiGateway::Account",
      "AWS::ApiGateway::DomainName",
      "AWS::Backup::BackupVault",
      "AWS::Cognito::UserPool",
      "AWS::Cognito::UserPoolClient",
      "AWS::DynamoDB::Table",
      "AWS::IAM::Role",
      "AWS::KMS::Key",
      "AWS::S3::Bucket",
      "AWS::SQS::Queue",
      "AWS::SQS::Queue",
    ]);
    expect(operator.cloud.account.resources.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual(
      left.toSorted((a, b) => a.id.localeCompare(b.id)),
    );
  });

  it("lets a new deployment adopt the data with the documented commands", async () => {
    const { cloud, configure, run, stackOf } = operator;
    const [bucket] = left.filter(({ type }) => type === "AWS::S3::Bucket");
    const of = (type: string): string => left.find((made) => made.type === type)?.id ?? "";
    const [table, userPool] = [of("AWS::DynamoDB::Table"), of("AWS::Cognito::UserPool")];
    const secretsKey = `arn:aws:kms:eu-west-1:123456789012:key/${of("AWS::KMS::Key")}`;
    const userPoolClient = of("AWS::Cognito::UserPoolClient");
    const adopted = { table, bucket: of("AWS::S3::Bucket"), secretsKey, userPool, userPoolClient };
    expect(documentedSettings("Adopt existing data")).toEqual(Object.keys(adopted));
    configure({ ...owned, ...adopted });
    const [adopt = "", revert = ""] = documented("Adopt existing data");
    await expect(run(adopt.replace(" --import-existing-resources", ""))).rejects.toThrow("already exists");
    expect(stackOf(DATA).status).toBe("ROLLBACK_COMPLETE");
    await run(unprotect, adopt);
    expect([...idsOf(stackOf(DATA)).values()]).toEqual(
      expect.arrayContaining([adopted.table, adopted.bucket, "api.example.com"]),
    );
    const outputs = ["TableName", "BucketName", "SecretsKeyArn", "UserPoolId"];
    const expected = [table, adopted.bucket, secretsKey, userPool];
    expect(outputs.map((name) => outputOf(stackOf(SERVICE), name))).toEqual(expected);
    // After the import, the bucket still notifies the queue of the earlier deployment. The second documented command corrects this.
    expect(idsOf(stackOf(DATA)).get("ImportsQueue807CB1E9")).not.toBe(notified(bucket));
    await run(revert);
    expect(idsOf(stackOf(DATA)).get("ImportsQueue807CB1E9")).toBe(notified(bucket));
    expect(documented("No copy for two days", "docs/runbook.md")).toContain(revert);
    const changes = () => cloud.stacks.flatMap(({ events }) => events).length;
    const before = changes();
    await run("npx cdk deploy --all");
    expect(changes()).toBe(before);
  });
});
