/** Evaluates the web ACL's own rules for requests to the API. Of the managed rules, the test checks only which may block a request. */
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { Problem } from "#shared/problem.ts";
import { WITHOUT_TOKEN } from "../../../infra/routes/route.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { CONSOLE_PROOF, VIEWER_ADDRESS } from "../../../infra/stack/web-acl.ts";
import { at, listed, small, synthesized, target, withConsole } from "../template.ts";

const template = await synthesized();

const acl = template.only("AWS::WAFv2::WebACL").properties;
const rules = listed(at(acl, "Rules"));
const statementOf = (name: string, from = rules) =>
  at(
    from.find((rule) => at(rule, "Name") === name),
    "Statement",
  );

interface Request {
  readonly path: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const Header = z.object({ SingleHeader: z.object({ Name: z.string() }) });

function fieldOf(field: unknown, { path, query = "", headers = {} }: Request): string | undefined {
  if (at(field, "QueryString") !== undefined) return query;
  if (at(field, "UriPath") !== undefined) return path;
  return headers[z.parse(Header, field).SingleHeader.Name];
}

/** Returns whether a statement of a rule matches the request. Throws an error for a kind of statement that the rules do not use. */
function isTrue(statement: unknown, request: Request): boolean {
  const nested = (kind: string) => at(statement, kind, "Statements");
  if (nested("OrStatement") !== undefined) return listed(nested("OrStatement")).some((one) => isTrue(one, request));
  if (nested("AndStatement") !== undefined) return listed(nested("AndStatement")).every((one) => isTrue(one, request));
  const negated = at(statement, "NotStatement", "Statement");
  if (negated !== undefined) return !isTrue(negated, request);
  const size = at(statement, "SizeConstraintStatement");
  if (size !== undefined) {
    expect(at(size, "ComparisonOperator")).toBe("GT");
    return Buffer.byteLength(fieldOf(at(size, "FieldToMatch"), request) ?? "") > Number(at(size, "Size"));
  }
  const regex = at(statement, "RegexMatchStatement");
  if (regex === undefined) throw new Error(`unknown statement ${JSON.stringify(statement)}`);
  const value = fieldOf(at(regex, "FieldToMatch"), request);
  // A statement on a header does not match a request without this header.
  return value !== undefined && new RegExp(String(at(regex, "RegexString"))).test(value.toLowerCase());
}

const isTooLarge = (request: Request): boolean => isTrue(statementOf("TooLarge"), request);

const json = (bytes: number): Request => ({
  path: "/live/api/prospects",
  headers: { "content-type": "application/json; charset=utf-8", "content-length": String(bytes) },
});
const form = (bytes: number): Request => ({
  path: "/live/api/prospects/import",
  headers: { "content-type": "Multipart/Form-Data; boundary=x", "content-length": String(bytes) },
});

describe("the rule of sizes", () => {
  it.each<[string, Request]>([
    ["a request without a body", { path: "/live/api/me", headers: { authorization: `Bearer ${"a".repeat(4_000)}` } }],
    [
      "the longest token that the authorizer accepts",
      { path: "/live/api/me", headers: { authorization: `Bearer ${"a".repeat(8_192)}` } },
    ],
    ["the longest search", { path: "/live/api/prospects", query: `search=${"%F0%9F%8F%A0".repeat(limits.search)}` }],
    ["the largest JSON body", json(limits.bodyBytes)],
    ["a JSON body whose refusal names the limit", json(limits.bodyBytes + 1)],
    ["the largest CSV file in a form", form(limits.importBytes + 1_000)],
    ["a chunked body", { path: "/live/api/prospects", headers: { "content-type": "application/json" } }],
  ])("passes %s", (_, request) => expect(isTooLarge(request)).toBe(false));

  it.each<[string, Request]>([
    ["a body of twice the limit", json(2 * limits.bodyBytes)],
    ["a body of ten times the limit", json(10 * limits.bodyBytes)],
    ["a body without a media type", { path: "/live/api/prospects", headers: { "content-length": "12345678901" } }],
    ["a form of twice the limit", form(2 * limits.importBytes)],
    ["a form of 10 MB", form(10_000_000)],
    ["an address of 3 KB", { path: `/live/api/${"a".repeat(3_000)}` }],
    ["a query of 9 KB", { path: "/live/api/prospects", query: "a".repeat(9_000) }],
    ["a token of 9 KB", { path: "/live/api/me", headers: { authorization: "a".repeat(9_000) } }],
  ])("refuses %s", (_, request) => expect(isTooLarge(request)).toBe(true));
});

describe("the web ACL", () => {
  it("belongs to the stage, is for production, and another preset can have it", async () => {
    const [association] = template.all("AWS::WAFv2::WebACLAssociation");
    expect(target(association?.properties.WebACLArn)).toBe(template.all("AWS::WAFv2::WebACL")[0]?.id);
    expect(JSON.stringify(association?.properties.ResourceArn)).toMatch(/:apigateway:.*::\/restapis\/.*\/stages\//);
    expect(readConfig({ preset: "production" }).webAcl).toBe(true);
    expect(readConfig({ preset: "production", webAcl: "false" }).webAcl).toBe(false);
    expect(readConfig({ webAcl: "true" }).webAcl).toBe(true);
    expect((await synthesized(small)).all("AWS::WAFv2::WebACL")).toEqual([]);
  });

  it("allows one address as many requests as one company, because a whole company may share an address", () => {
    const { RateLimit } = z.parse(
      z.object({ RateLimit: z.number() }),
      at(template.all("AWS::ApiGateway::UsagePlan")[0]?.properties, "Throttle"),
    );
    expect(at(statementOf("FloodFromOneAddress"), "RateBasedStatement")).toEqual({
      AggregateKeyType: "IP",
      EvaluationWindowSec: 300,
      Limit: RateLimit * 300,
    });
  });

  it("allows one address half of the requests without a token that a method accepts in a minute, and counts no others for this", () => {
    const rule = at(statementOf("FloodWithoutToken"), "RateBasedStatement");
    expect(rule).toMatchObject({
      AggregateKeyType: "IP",
      EvaluationWindowSec: 60,
      Limit: WITHOUT_TOKEN.perSecond * 30,
    });
    const isCounted = (headers: Record<string, string>) =>
      isTrue(at(rule, "ScopeDownStatement"), { path: "/live/api/session/refresh", headers });
    expect([{}, { cookie: "session=a" }, { authorization: "" }].map(isCounted)).toEqual([true, true, true]);
    expect(isCounted({ authorization: "Bearer a" })).toBe(false);
  });

  it("counts requests through the console by the user's address, which CloudFront sets, and all other requests by their source address", async () => {
    const made = await synthesized(withConsole);
    const all = listed(at(made.all("AWS::WAFv2::WebACL")[0]?.properties, "Rules"));
    const flood = (name: string) => at(statementOf(name, all), "RateBasedStatement");
    const [distribution] = made.all("AWS::CloudFront::Distribution");
    const origins = listed(at(distribution?.properties, "DistributionConfig", "Origins"));
    const sent = origins.flatMap((origin) => listed(at(origin, "OriginCustomHeaders")));
    const proof = at(
      sent.find((one) => at(one, "HeaderName") === CONSOLE_PROOF),
      "HeaderValue",
    );
    expect(proof).toEqual({ "Fn::Select": [2, { "Fn::Split": ["/", { Ref: "AWS::StackId" }] }] });
    const fromConsole = {
      ByteMatchStatement: {
        FieldToMatch: { SingleHeader: { Name: CONSOLE_PROOF } },
        PositionalConstraint: "EXACTLY",
        SearchString: proof,
        TextTransformations: [{ Priority: 0, Type: "NONE" }],
      },
    };
    expect(flood("FloodThroughConsole")).toMatchObject({
      AggregateKeyType: "FORWARDED_IP",
      ForwardedIPConfig: { HeaderName: VIEWER_ADDRESS, FallbackBehavior: "MATCH" },
      ScopeDownStatement: fromConsole,
    });
    expect(flood("FloodFromOneAddress")).toMatchObject({
      AggregateKeyType: "IP",
      ScopeDownStatement: { NotStatement: { Statement: fromConsole } },
    });
    const withoutToken = listed(at(flood("FloodWithoutToken"), "ScopeDownStatement", "AndStatement", "Statements"));
    expect(withoutToken).toContainEqual({ NotStatement: { Statement: fromConsole } });
    expect(at(flood("FloodThroughConsole"), "Limit")).toBe(at(flood("FloodFromOneAddress"), "Limit"));
    const priorities = all.map((rule) => at(rule, "Priority"));
    expect(new Set(priorities).size).toBe(priorities.length);
  });

  it("answers a request that its own rules refuse with a problem body, and all others with the gateway's", () => {
    const answers = rules.flatMap((rule) => listed(at(rule, "Action", "Block", "CustomResponse")));
    const problems = answers.map((answer) => {
      const body = at(acl, "CustomResponseBodies", String(at(answer, "CustomResponseBodyKey")));
      expect(at(body, "ContentType")).toBe("APPLICATION_JSON");
      const { status, code } = z.parse(z.omit(Problem, { requestId: true }), JSON.parse(String(at(body, "Content"))));
      expect(at(answer, "ResponseCode")).toBe(status);
      return `${status} ${code}`;
    });
    expect(problems).toEqual(["429 rate_limited", "429 rate_limited", "413 payload_too_large"]);
    // A 413 response to an import must name the endpoint that creates an import job.
    expect(at(acl, "CustomResponseBodies", "too-large", "Content")).toContain("POST /api/prospects/imports");
    expect(at(answers[0], "ResponseHeaders")).toEqual([{ Name: "Retry-After", Value: "60" }]);
    const [api] = template.all("AWS::ApiGateway::RestApi");
    expect(at(api?.properties.Body, "x-amazon-apigateway-gateway-responses", "WAF_FILTERED", "statusCode")).toBe("403");
  });

  it("lets no managed rule refuse a text that users may write: CSV, notes, URLs of webhooks, searches", () => {
    const groups = rules.flatMap((rule) => listed(at(rule, "Statement", "ManagedRuleGroupStatement")));
    expect(groups.map((group) => at(group, "Name"))).toEqual([
      "AWSManagedRulesAmazonIpReputationList",
      "AWSManagedRulesCommonRuleSet",
    ]);
    const counted = listed(at(groups[1], "RuleActionOverrides")).map((override) => {
      expect(at(override, "ActionToUse")).toEqual({ Count: {} });
      return String(at(override, "Name"));
    });
    // The rules of the managed group that inspect the body or the query, according to AWS's documentation of the group.
    const onTexts = [
      ...["SizeRestrictions_QUERYSTRING", "SizeRestrictions_BODY", "EC2MetaDataSSRF_BODY"],
      ...["EC2MetaDataSSRF_QUERYARGUMENTS", "GenericLFI_QUERYARGUMENTS", "GenericLFI_BODY"],
      ...["RestrictedExtensions_QUERYARGUMENTS", "GenericRFI_QUERYARGUMENTS", "GenericRFI_BODY"],
      ...["CrossSiteScripting_QUERYARGUMENTS", "CrossSiteScripting_BODY"],
    ];
    expect(counted.toSorted()).toEqual([...onTexts, "NoUserAgent_HEADER"].toSorted());
  });

  it("keeps no samples of requests, which would contain access tokens", () => {
    const configs = [acl, ...rules].map((part) => at(part, "VisibilityConfig"));
    expect(configs).toHaveLength(6);
    for (const config of configs) expect(at(config, "SampledRequestsEnabled")).toBe(false);
  });
});
