/** Tests the API's own domain name, which survives the stacks, points to the present API, and is the only address that clients see. */
import { describe, expect, it } from "vitest";
import { readConfig } from "../../../infra/settings/config.ts";
import { at, synthesized, type Template, target } from "../template.ts";

const certificate = "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd-12ab-34cd-56ef-1234567890ab";
const context = { domain: "api.example.com", certificate, basePath: "canvassing", alarmEmail: "operator@example.com" };

const without = await synthesized(readConfig({ alarmEmail: context.alarmEmail }));
const owned = await synthesized(readConfig(context));
const both = await synthesized(readConfig({ ...context, defaultEndpoint: "true" }));

describe("a domain", () => {
  it("is retained with the data, and accepts TLS 1.2 and newer", () => {
    const { Resources, Outputs } = owned.stacks.data;
    expect(Resources.Domain).toMatchObject({
      Type: "AWS::ApiGateway::DomainName",
      DeletionPolicy: "RetainExceptOnCreate",
      UpdateReplacePolicy: "Retain",
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

  it("is mapped to the API by the service, without an import that would forbid to change the domain", () => {
    const { properties } = owned.only("AWS::ApiGateway::BasePathMapping");
    expect(properties).toMatchObject({ DomainName: "api.example.com", BasePath: "canvassing" });
    expect(owned.resources[target(properties.RestApiId) ?? ""]?.Type).toBe("AWS::ApiGateway::RestApi");
    expect(owned.resources[target(properties.Stage) ?? ""]?.Type).toBe("AWS::ApiGateway::Stage");
    expect(JSON.stringify(owned.stacks.service)).not.toMatch(/ImportValue":"[^"]*Domain/);
  });

  it("is the address that the outputs show, and API Gateway's own URL answers only if the operator wants it", () => {
    expect(owned.outputs.ApiUrl?.Value).toBe("https://api.example.com/canvassing");
    expect(JSON.stringify(without.outputs.ApiUrl?.Value)).toContain("execute-api");
    // With `Mode: overwrite`, the setting of the definition overrides the property of the resource.
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
    // API Gateway applies the setting only with a new deployment of the API, which has another id.
    const deployment = (from: Template) => from.only("AWS::ApiGateway::Deployment").id;
    expect(deployment(owned)).not.toBe(deployment(both));
  });

  it("does not change who may call from a browser", () => {
    const cors = (from: Template) => at(from.only("AWS::S3::Bucket").properties, "CorsConfiguration");
    expect(cors(owned)).toEqual(cors(without));
  });
});
