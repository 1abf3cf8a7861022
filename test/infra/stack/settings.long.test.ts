/** Tests settings that change single resources: retention times, the mail of the user pool, `allowedOrigins=*`, and the API's own domain. */
import { describe, expect, it, vi } from "vitest";
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { lambdaContext, proxyEvent } from "../../harness/proxy-event.ts";
import { at, listed, ownIdentity, synthesized, type Template, target } from "../template.ts";

const logDays = (from: Template) => from.all("AWS::Logs::LogGroup").map(({ properties }) => properties.RetentionInDays);

it("logs, files of imports and the recovery of the table are kept as long as the settings say", async () => {
  const kept = { logDays: "14", importFileDays: "400", recoveryDays: "7", alarmEmail: "operator@example.com" };
  const template = await synthesized(readConfig(kept));
  expect(new Set(logDays(template))).toEqual(new Set([14]));
  // The link to an exported file must work for seven days, so the file is kept for eight days, whatever the settings are.
  const rules = listed(at(template.only("AWS::S3::Bucket").properties, "LifecycleConfiguration", "Rules"));
  const days = Object.fromEntries(rules.map((rule) => [at(rule, "Id"), at(rule, "ExpirationInDays")]));
  expect(days).toMatchObject({ uploads: 400, imports: 400, exports: 8 });
  const [table] = template.all("AWS::DynamoDB::Table");
  expect(at(table?.properties, "PointInTimeRecoverySpecification", "RecoveryPeriodInDays")).toBe(7);
});

it("without a setting, logs are kept for 90 days, and API Gateway's own log for 30", async () => {
  expect(new Set(logDays(await synthesized()))).toEqual(new Set([90, 30]));
});

const sesIdentity = "arn:aws:ses:eu-west-1:123456789012:identity/example.com";

it("the client may write no attribute that the service uses; an e-mail address is valid until the new one is verified", async () => {
  const template = await synthesized();
  const { properties: client } = template.only("AWS::Cognito::UserPoolClient");
  // With an empty list, users could write all standard attributes. The list therefore has one attribute that the service does not use.
  expect(client.WriteAttributes).toEqual(["locale"]);
  const { properties: pool } = template.only("AWS::Cognito::UserPool");
  expect(at(pool, "UserAttributeUpdateSettings", "AttributesRequireVerificationBeforeUpdate")).toEqual(["email"]);
  // Users may write every attribute that the schema requires, so the schema must not require any.
  expect(pool.Schema).toBeUndefined();
  expect(pool.EmailConfiguration).toBeUndefined();
});

it.each([
  ["no-reply@example.com", sesIdentity],
  ["Acme <no-reply@mail.example.com>", sesIdentity],
  ["Acme <No-Reply@example.com>", `${sesIdentity.split("/")[0]}/no-reply@example.com`],
])("sends its mail through SES as %s by %s", async (from, identity) => {
  const template = await synthesized({ ...ownIdentity, ...readConfig({ mailFrom: from, sesIdentity: identity }) });
  const { properties: pool } = template.only("AWS::Cognito::UserPool");
  const sender = { EmailSendingAccount: "DEVELOPER", From: from, SourceArn: identity };
  expect(pool.EmailConfiguration).toEqual(sender);
});

it("`*` allows all origins, but allows none of them to send cookies or the header of the console", async () => {
  const open = await synthesized({ ...ownIdentity, allowedOrigins: ["*"] });
  const text = JSON.stringify(open.all("AWS::ApiGateway::RestApi")[0]?.properties.Body);
  const origins = [...text.matchAll(/Access-Control-Allow-Origin":"([^"]+)"/g)].map(([, origin]) => origin);
  expect(new Set(origins)).toEqual(new Set(["'*'"]));
  // Without Access-Control-Allow-Credentials, browsers send no cookies after a preflight, and hide the answers to requests with cookies.
  expect(text).not.toMatch(/allow-credentials/i);
  expect(text).not.toMatch(/x-requested-with/i);
  expect(at(open.all("AWS::S3::Bucket")[0]?.properties, "CorsConfiguration", "CorsRules", 0, "AllowedOrigins")).toEqual(
    ["*"],
  );
  vi.stubEnv("ALLOWED_ORIGINS", "*");
  vi.stubEnv("TABLE_NAME", "t");
  const caller = proxyEvent({ companyId: "1", userId: "2", rights: "sales" });
  const event = { ...caller, multiValueHeaders: { Origin: ["https://any.example.com"] } };
  const contract = { summary: "", allow: "everyone", scope: "none", status: 200, response: z.string() } as const;
  const { headers } = await endpoint(contract, async () => "answer")(event, lambdaContext);
  expect(headers).toMatchObject({ "Access-Control-Allow-Origin": "https://any.example.com", Vary: "Origin" });
  expect(JSON.stringify(headers)).not.toMatch(/allow-credentials/i);
  vi.unstubAllEnvs();
});

const certificate = "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd-12ab-34cd-56ef-1234567890ab";
const context = { domain: "api.example.com", certificate, basePath: "canvassing", alarmEmail: "operator@example.com" };

const without = await synthesized(readConfig({ alarmEmail: context.alarmEmail }));
const owned = await synthesized(readConfig(context));
const both = await synthesized(readConfig({ ...context, defaultEndpoint: "true" }));

describe("a domain", () => {
  it("accepts TLS 1.2 and newer, and the outputs name the target of its DNS record", () => {
    const { Resources, Outputs } = owned.stacks.data;
    expect(Resources.Domain).toMatchObject({
      Type: "AWS::ApiGateway::DomainName",
      Properties: {
        DomainName: "api.example.com",
        RegionalCertificateArn: certificate,
        EndpointConfiguration: { Types: ["REGIONAL"] },
        SecurityPolicy: "TLS_1_2",
      },
    });
    expect(Outputs.DomainTarget?.Value).toEqual({ "Fn::GetAtt": ["Domain", "RegionalDomainName"] });
    expect(Outputs.DomainTargetZone?.Value).toEqual({ "Fn::GetAtt": ["Domain", "RegionalHostedZoneId"] });
  });

  it("is mapped to the API by the service", () => {
    const { properties } = owned.only("AWS::ApiGateway::BasePathMapping");
    expect(properties).toMatchObject({ DomainName: "api.example.com", BasePath: "canvassing" });
    expect(owned.resources[target(properties.RestApiId) ?? ""]?.Type).toBe("AWS::ApiGateway::RestApi");
    expect(owned.resources[target(properties.Stage) ?? ""]?.Type).toBe("AWS::ApiGateway::Stage");
  });

  it("is the address that the outputs show, and API Gateway's own URL answers only if the operator wants it", () => {
    expect(owned.outputs.ApiUrl?.Value).toBe("https://api.example.com/canvassing");
    expect(JSON.stringify(without.outputs.ApiUrl?.Value)).toContain("execute-api");
    // With `Mode: overwrite`, the setting in the API definition overrides the property of the resource, so both must be the same.
    const isOff = (from: Template) => {
      const { properties } = from.only("AWS::ApiGateway::RestApi");
      const setting = at(properties, "Body", "servers", 0, "x-amazon-apigateway-endpoint-configuration");
      return [properties.DisableExecuteApiEndpoint ?? false, at(setting, "disableExecuteApiEndpoint")];
    };
    expect([without, owned, both].map(isOff)).toEqual([
      [false, false],
      [true, true],
      [false, false],
    ]);
    // API Gateway applies the setting only with a new deployment of the API, so the id of the deployment must change.
    const deployment = (from: Template) => from.only("AWS::ApiGateway::Deployment").id;
    expect(deployment(owned)).not.toBe(deployment(both));
  });

  it("does not change who may call from a browser", () => {
    const cors = (from: Template) => at(from.only("AWS::S3::Bucket").properties, "CorsConfiguration");
    expect(cors(owned)).toEqual(cors(without));
  });
});
