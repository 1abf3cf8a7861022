/** Tests the stack with the console: how CloudFront answers, who can read the bucket, and how the console signs users in. */
import { describe, expect, it } from "vitest";
import { allNeededBy } from "../../harness/cloud/template.ts";
import { at, consoleOfIssuer, joined, largest, listed, synthesized, target, withConsole } from "../template.ts";

const template = await synthesized(withConsole);
/** The API and the console have domains of their own, and the API has no other address. */
const onDomains = await synthesized({
  ...withConsole,
  console: { domain: { name: "app.example.com", certificate: "arn:aws:acm:us-east-1:123456789012:certificate/1" } },
  domain: { name: "api.example.com", certificate: "arn", basePath: "v1", keepsDefaultEndpoint: false },
});

const distribution = at(template.only("AWS::CloudFront::Distribution").properties, "DistributionConfig");
const behaviors = listed(at(distribution, "CacheBehaviors"));

/**
 * The HTTP statuses with which CloudFront caches an error of an origin for ten seconds, even with the policy CachingDisabled, unless the
 * distribution sets another time. With some of them, CloudFront caches the error only if the response has `max-age`. The list is that of
 * https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/HTTPStatusCodes.html without 412 and 415: CloudFront caches these two
 * only with `max-age`, and a distribution cannot set a time for them.
 */
const cachedByDefault = [400, 403, 404, 405, 414, 500, 501, 502, 503, 504];

it("copies the files, which CloudFormation cannot delete, when everything else exists", async () => {
  const { Resources } = (await synthesized(largest)).stacks.service;
  const copies = Object.keys(Resources).filter((id) => Resources[id]?.Type === "Custom::CDKBucketDeployment");
  const [first = ""] = copies.filter((id) => id.startsWith("ConsoleAssets"));
  const needed = allNeededBy(Resources, first);
  const later = Object.keys(Resources).filter((id) => !needed.has(id));
  expect(later.toSorted()).toEqual(copies.toSorted());
});

describe("the distribution", () => {
  it("forwards the paths of the API without caching", () => {
    const paths = behaviors.map((behavior) => at(behavior, "PathPattern"));
    expect(paths).toEqual(["/api/*", "/docs", "/openapi*", "/health*"]);
    for (const behavior of behaviors) {
      expect(behavior).toMatchObject({
        // The ids of the policies CachingDisabled and AllViewerExceptHostHeader, with which CloudFront forwards the Authorization header.
        CachePolicyId: "4135ea2d-6df8-44a3-9df3-4b5a84be39ad",
        OriginRequestPolicyId: "b689b0a8-53d0-40ab-baf2-68738e2966ac",
        ViewerProtocolPolicy: "https-only",
        AllowedMethods: ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"],
      });
      const [association] = listed(at(behavior, "FunctionAssociations"));
      expect(target(at(association, "FunctionARN"))).toContain("ApiRequest");
    }
  });

  it("caches no error, because its cache does not distinguish users, and passes the body of each error on", () => {
    const responses = listed(at(distribution, "CustomErrorResponses"));
    const codes = responses.map((response) => Number(at(response, "ErrorCode")));
    expect(codes).toEqual(expect.arrayContaining(cachedByDefault));
    // No error has a page (`ResponsePagePath`), because a page would replace the problem body of the API.
    expect(responses).toEqual(codes.map((code) => ({ ErrorCode: code, ErrorCachingMinTTL: 0 })));
  });

  it("rewrites paths and sets the headers of pages for its files only", () => {
    const pages = at(distribution, "DefaultCacheBehavior");
    const [association] = listed(at(pages, "FunctionAssociations"));
    expect(target(at(association, "FunctionARN"))).toContain("PageRequest");
    expect(target(at(pages, "ResponseHeadersPolicyId"))).toBeDefined();
    const { properties } = template.only("AWS::CloudFront::ResponseHeadersPolicy");
    const policy = at(properties, "ResponseHeadersPolicyConfig", "SecurityHeadersConfig");
    const contentPolicy = joined(at(policy, "ContentSecurityPolicy", "ContentSecurityPolicy"));
    expect(contentPolicy).toContain("default-src 'none'; script-src 'self';");
    const [bucket] = template.all("AWS::S3::Bucket").filter(({ id }) => id.startsWith("Files"));
    expect(contentPolicy).toContain(
      `connect-src 'self' https://<${bucket?.id}>.s3.<AWS::Region>.<AWS::URLSuffix>; worker-src`,
    );
    expect(at(policy, "StrictTransportSecurity", "AccessControlMaxAgeSec")).toBeGreaterThan(31_536_000);
  });

  it.each([
    ["of CloudFront, whose name nobody knows before the deployment", template, "https://*.cloudfront.net"],
    ["of its own domain only", onDomains, "https://app.example.com"],
  ])("may upload files to the bucket of the data stack from pages %s", (_, { stacks }, origin) => {
    const buckets = Object.values(stacks.data.Resources).filter(({ Type }) => Type === "AWS::S3::Bucket");
    expect(buckets.map(({ Properties }) => at(Properties, "CorsConfiguration", "CorsRules"))).toEqual([
      [
        {
          AllowedOrigins: [origin],
          AllowedMethods: ["PUT"],
          AllowedHeaders: ["content-type", "if-none-match"],
          MaxAge: 600,
        },
      ],
    ]);
  });

  it("is the only reader of the bucket", () => {
    const policy = template.all("AWS::S3::BucketPolicy").find(({ id }) => id.startsWith("ConsolePages"));
    const allowed = listed(at(policy?.properties, "PolicyDocument", "Statement")).filter(
      (statement) => at(statement, "Effect") === "Allow",
    );
    expect(allowed).toMatchObject([
      { Action: "s3:GetObject", Principal: { Service: "cloudfront.amazonaws.com" }, Condition: { StringEquals: {} } },
    ]);
    expect(JSON.stringify(at(allowed[0], "Condition"))).toContain("AWS:SourceArn");
  });

  it("uses the API's own domain name as origin if the API has no other address", () => {
    const { properties } = onDomains.only("AWS::CloudFront::Distribution");
    expect(at(properties, "DistributionConfig", "Origins")).toContainEqual(
      expect.objectContaining({ DomainName: "api.example.com", OriginPath: "/v1" }),
    );
  });
});

it("the files are published in two steps: first the assets for a year, then the pages that name them", () => {
  const copies = template.all("Custom::CDKBucketDeployment");
  const [assets, pages] = copies.map(({ properties }) => properties);
  expect(assets).toMatchObject({
    Include: ["assets/*"],
    SystemMetadata: { "cache-control": "public, max-age=31536000, immutable" },
    Prune: false,
  });
  expect(pages).toMatchObject({
    Exclude: ["assets/*"],
    SystemMetadata: { "cache-control": "no-cache" },
    Prune: false,
  });
  expect(listed(copies[1]?.resource.DependsOn)).toContain(copies[0]?.id);
});

describe("the client of the user pool", () => {
  it("does code flow without a secret, for this address only, and its tokens cannot change the user", () => {
    const client = template.all("AWS::Cognito::UserPoolClient").find(({ id }) => id.startsWith("ConsoleClient"));
    expect(client?.properties).toMatchObject({
      AllowedOAuthFlows: ["code"],
      AllowedOAuthScopes: ["openid"],
      GenerateSecret: false,
      RefreshTokenValidity: 480,
      WriteAttributes: ["locale"],
    });
    const host = { "Fn::GetAtt": [template.only("AWS::CloudFront::Distribution").id, "DomainName"] };
    const url = (path: string) => ({ "Fn::Join": ["", ["https://", host, path]] });
    expect(client?.properties.CallbackURLs).toEqual([url("/api/session/callback")]);
    expect(client?.properties.LogoutURLs).toEqual([url("/")]);
    const { Variables } = template.only("AWS::ApiGateway::Stage").properties;
    expect(Variables).toEqual({
      consoleUrl: { "Fn::Join": ["", ["https://", host]] },
      consoleClient: { Ref: client?.id },
    });
  });

  it("is not made for another issuer, whose secret only the functions of the sign-in may read", async () => {
    const other = await synthesized(consoleOfIssuer);
    expect(other.all("AWS::Cognito::UserPoolClient")).toEqual([]);
    const readers = other
      .all("AWS::Lambda::Function")
      .filter(({ properties }) => at(properties, "Environment", "Variables", "CONSOLE_SECRET_PARAMETER") !== undefined)
      .map(({ resource }) => resource.Metadata.file);
    expect(readers.toSorted()).toEqual(["session/callback", "session/login", "session/logout", "session/refresh"]);
    const granted = other
      .all("AWS::IAM::Role")
      .filter(({ properties }) => JSON.stringify(properties).includes("console-secret"));
    expect(granted).toHaveLength(readers.length);
  });
});
