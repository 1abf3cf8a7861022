/** Tests that a deployment can import the table, bucket, encryption key and user pool of an earlier deployment. */
import { describe, expect, it } from "vitest";
import { readConfig } from "../../../infra/settings/config.ts";
import { at, listed, synthesized, type Template } from "../template.ts";

const names = {
  table: "Canvassing-Data-TableCD117FA1-1ABC",
  bucket: "canvassing-data-files8e6940b8-1abc",
  userPool: "eu-west-1_AbCdEfGhI",
  userPoolClient: "1a2b3c4d5e",
  secretsKey: "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
} as const;
/** Returns the resource for which the function has the right to this action. */
const resourceOf = ({ statementsOf }: Template, file: string, action: string): unknown =>
  at(
    statementsOf(file).find((statement) => listed(at(statement, "Action")).includes(action)),
    "Resource",
  );

const { table, bucket, secretsKey } = names;
const made = await synthesized(readConfig({ secretsKey }));
const adopted = await synthesized(readConfig({ table, bucket, secretsKey }));

describe("an adopted table and bucket", () => {
  it("are resources of the stack under these names, which CloudFormation may import", () => {
    // CloudFormation imports an existing resource only if the template contains its name and its deletion policy begins with `Retain`.
    const DeletionPolicy = "RetainExceptOnCreate";
    const resourceOfType = (type: string) => adopted.only(type).resource;
    expect(resourceOfType("AWS::DynamoDB::Table")).toMatchObject({ DeletionPolicy, Properties: { TableName: table } });
    expect(resourceOfType("AWS::S3::Bucket")).toMatchObject({ DeletionPolicy, Properties: { BucketName: bucket } });
  });

  it("have no other difference from new resources", () => {
    const given = new Set(["TableName", "BucketName", "aws:asset:path"]);
    const text = (value: unknown) =>
      JSON.stringify(value, (key, part: unknown) => (given.has(key) && typeof part === "string" ? undefined : part));
    for (const stack of ["data", "service"] as const) {
      const [before, after] = [made.stacks[stack], adopted.stacks[stack]];
      expect(Object.keys(after.Resources)).toEqual(Object.keys(before.Resources));
      const ids = Object.keys(before.Resources);
      expect(ids.filter((id) => text(after.Resources[id]) !== text(before.Resources[id]))).toEqual([]);
      expect(after.Outputs).toEqual(before.Outputs);
    }
  });
});

it("an adopted secrets key is used unchanged, and the stack creates no key", () => {
  expect(JSON.stringify(made.all("AWS::KMS::Key"))).not.toContain("webhook-secrets");
  expect(made.variablesOf("events/deliver")).toMatchObject({ SECRETS_KEY_ARN: secretsKey });
  expect(resourceOf(made, "events/deliver", "kms:Decrypt")).toBe(secretsKey);
});

it("an adopted user pool is the issuer and gets invitations; the stack neither makes nor changes a pool", async () => {
  const { userPool, userPoolClient } = names;
  const console = { console: true, signInPages: "false" };
  const template = await synthesized(readConfig({ ...console, userPool, userPoolClient, audience: "other" }));
  expect(template.all("AWS::Cognito::UserPool")).toEqual([]);
  expect(template.all("AWS::Cognito::UserPoolDomain")).toEqual([]);
  const clients = template.all("AWS::Cognito::UserPoolClient").map(({ id }) => id);
  expect(clients).toEqual([expect.stringMatching(/^ConsoleClient/)]);
  expect(template.variablesOf("users/create")).toMatchObject({ USER_POOL_ID: userPool });
  const variables = template.variablesOf("authorize");
  expect(variables).toMatchObject({ AUDIENCE: expect.stringMatching(`^${userPoolClient},other`) });
  const host = ["https://cognito-idp.", { Ref: "AWS::Region" }, ".", { Ref: "AWS::URLSuffix" }];
  expect(at(variables, "ISSUER")).toEqual({ "Fn::Join": ["", [...host, `/${userPool}`]] });
  expect(template.outputs.UserPoolId?.Value).toBe(userPool);
  const pool = resourceOf(template, "users/create", "cognito-idp:AdminCreateUser");
  expect(JSON.stringify(pool)).toContain(`:userpool/${userPool}"`);
});
