/** The web ACL (AWS WAF), which refuses too many requests from one address, oversized requests, and known attacks. */
import type { SpecRestApi } from "aws-cdk-lib/aws-apigateway";
import { CfnWebACL, CfnWebACLAssociation } from "aws-cdk-lib/aws-wafv2";
import { Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { problemBody } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import type { ProblemCode } from "#shared/problem.ts";
import { type Throttle, WITHOUT_TOKEN } from "../routes/route.ts";
import { TOO_LARGE_DETAIL } from "./gateway.ts";
import { stackUuid } from "./stack-id.ts";

/** The CloudFront function infra/edge/api-request.js sets this header to the user's IP address, and overwrites a value from the client. */
export const VIEWER_ADDRESS = "x-viewer-address";

/** CloudFront sets this header to the stack's UUID, which is not public. A client that knows the UUID can avoid the limit by address. */
export const CONSOLE_PROOF = "x-console-proof";

const WINDOW_SECONDS = 300;

/** The period of the rule for requests without a token. One address may send half of the rate that API Gateway accepts for a method. */
const WITHOUT_TOKEN_SECONDS = 60;
const WITHOUT_TOKEN_RATE = WITHOUT_TOKEN.perSecond / 2;

/** Limits of the query and the path. A valid URL is shorter: its longest parameter is a search of 200 characters of up to 12 bytes each. */
const MAX_QUERY_BYTES = 8_192;
const MAX_PATH_BYTES = 2_048;
/**
 * The bytes of the longest token with `Bearer `. AWS WAF sees the whole content of a single header. Its limit of 8 KB is only for rules
 * that inspect all headers together.
 * https://docs.aws.amazon.com/waf/latest/developerguide/waf-oversize-request-components.html
 */
const MAX_AUTHORIZATION_BYTES = limits.accessToken + "Bearer ".length;

/**
 * The web ACL only counts the matches of these rules, because they search texts in which users may write anything. No function executes the
 * texts, and no page shows them as HTML.
 */
const countedRules = [
  ...["SizeRestrictions_BODY", "SizeRestrictions_QUERYSTRING", "GenericLFI_BODY", "GenericRFI_BODY"],
  ...["CrossSiteScripting_BODY", "EC2MetaDataSSRF_BODY", "GenericLFI_QUERYARGUMENTS", "GenericRFI_QUERYARGUMENTS"],
  ...["CrossSiteScripting_QUERYARGUMENTS", "EC2MetaDataSSRF_QUERYARGUMENTS", "RestrictedExtensions_QUERYARGUMENTS"],
  // Many HTTP clients in scripts send no User-Agent.
  "NoUserAgent_HEADER",
] as const;

/** Creates the web ACL of the API. `isBehindCloudFront` is true if CloudFront also forwards requests to the API, for the console. */
export function protectApi(scope: Construct, api: SpecRestApi, company: Throttle, isBehindCloudFront: boolean): void {
  const home = new Construct(scope, "WebAcl");
  const { partition, region } = Stack.of(scope);
  const acl = new CfnWebACL(home, "Acl", {
    scope: "REGIONAL",
    defaultAction: { allow: {} },
    description: "Refuses floods from one address, oversized requests and known attacks",
    visibilityConfig: visibility("WebAcl"),
    customResponseBodies: {
      [FLOOD]: responseBody("rate_limited", "Too many requests from one address."),
      [TOO_LARGE]: responseBody("payload_too_large", TOO_LARGE_DETAIL),
    },
    rules: [
      ...floodRules(company.perSecond * WINDOW_SECONDS, isBehindCloudFront ? throughConsole(home) : undefined),
      {
        name: "TooLarge",
        priority: 1,
        statement: { orStatement: { statements: [...longTexts, largeForm, largeBody] } },
        action: refusal(413, TOO_LARGE),
        visibilityConfig: visibility("TooLarge"),
      },
      managed(2, "AWSManagedRulesAmazonIpReputationList", []),
      managed(3, "AWSManagedRulesCommonRuleSet", countedRules),
    ],
  });
  const association = new CfnWebACLAssociation(home, "Association", {
    resourceArn: `arn:${partition}:apigateway:${region}::/restapis/${api.restApiId}/stages/${api.deploymentStage.stageName}`,
    webAclArn: acl.attrArn,
  });
  association.node.addDependency(api.deploymentStage);
}

/**
 * Returns the rules against floods. One address may send as many requests as one company, whose users may share it. Requests through the
 * console's distribution share CloudFront's addresses, so another rule counts them by a header. `fromConsole` matches them.
 */
function floodRules(limit: number, fromConsole: CfnWebACL.StatementProperty | undefined): CfnWebACL.RuleProperty[] {
  const ofCompany = { limit, evaluationWindowSec: WINDOW_SECONDS };
  const notFromConsole = fromConsole && { notStatement: { statement: fromConsole } };
  const noToken = { notStatement: { statement: longer(header("authorization"), 0) } };
  const direct = flood("FloodFromOneAddress", 0, {
    ...ofCompany,
    aggregateKeyType: "IP",
    ...(notFromConsole && { scopeDownStatement: notFromConsole }),
  });
  const throughConsole =
    fromConsole &&
    flood("FloodThroughConsole", 4, {
      ...ofCompany,
      aggregateKeyType: "FORWARDED_IP",
      // `MATCH` refuses a request whose header contains no valid IP address. CloudFront's requests always contain one.
      forwardedIpConfig: { headerName: VIEWER_ADDRESS, fallbackBehavior: "MATCH" },
      scopeDownStatement: fromConsole,
    });
  const withoutToken = flood("FloodWithoutToken", 5, {
    limit: WITHOUT_TOKEN_RATE * WITHOUT_TOKEN_SECONDS,
    evaluationWindowSec: WITHOUT_TOKEN_SECONDS,
    aggregateKeyType: "IP",
    // Do not count requests through the console's distribution, which share its addresses. The rule above counts them by user's address.
    scopeDownStatement: notFromConsole ? { andStatement: { statements: [noToken, notFromConsole] } } : noToken,
  });
  return [direct, ...(throughConsole === undefined ? [] : [throughConsole]), withoutToken];
}

const flood = (
  name: string,
  priority: number,
  rateBasedStatement: CfnWebACL.RateBasedStatementProperty,
): CfnWebACL.RuleProperty => ({
  name,
  priority,
  statement: { rateBasedStatement },
  action: refusal(429, FLOOD, [{ name: "Retry-After", value: "60" }]),
  visibilityConfig: visibility(name),
});

/** Matches requests with the proof that only CloudFront sends. Without the proof, a client could send a new false address each time. */
const throughConsole = (scope: Construct): CfnWebACL.StatementProperty => ({
  byteMatchStatement: {
    fieldToMatch: header(CONSOLE_PROOF),
    positionalConstraint: "EXACTLY",
    searchString: stackUuid(scope),
    textTransformations: NONE,
  },
});

/** Returns the metrics of a rule. No requests are sampled, because AWS WAF would store their headers, which contain access tokens. */
const visibility = (metricName: string): CfnWebACL.VisibilityConfigProperty => ({
  cloudWatchMetricsEnabled: true,
  sampledRequestsEnabled: false,
  metricName,
});

const FLOOD = "flood";
const TOO_LARGE = "too-large";

/** Returns a problem document, the format of all errors of the API. It lacks the request id, because AWS WAF cannot insert it. */
function responseBody(code: ProblemCode, detail: string): CfnWebACL.CustomResponseBodyProperty {
  const { requestId: _, ...content } = problemBody(code, detail, "", []);
  return { contentType: "APPLICATION_JSON", content: JSON.stringify(content) };
}

const refusal = (
  responseCode: number,
  customResponseBodyKey: string,
  responseHeaders: { name: string; value: string }[] = [],
): CfnWebACL.RuleActionProperty => ({
  block: {
    customResponse: {
      responseCode,
      customResponseBodyKey,
      ...(responseHeaders.length > 0 && { responseHeaders }),
    },
  },
});

const NONE = [{ priority: 0, type: "NONE" }];
const LOWER_CASE = [{ priority: 0, type: "LOWERCASE" }];

const longer = (fieldToMatch: CfnWebACL.FieldToMatchProperty, size: number): CfnWebACL.StatementProperty => ({
  sizeConstraintStatement: { fieldToMatch, comparisonOperator: "GT", size, textTransformations: NONE },
});

const header = (name: string): CfnWebACL.FieldToMatchProperty => ({ singleHeader: { Name: name } });

const longTexts = [
  longer({ queryString: {} }, MAX_QUERY_BYTES),
  longer({ uriPath: {} }, MAX_PATH_BYTES),
  longer(header("authorization"), MAX_AUTHORIZATION_BYTES),
];

const matches = (name: string, regexString: string): CfnWebACL.StatementProperty => ({
  regexMatchStatement: { fieldToMatch: header(name), regexString, textTransformations: LOWER_CASE },
});

const isForm = matches("content-type", "^multipart/form-data");

/**
 * Matches by Content-Length, because AWS WAF inspects only the first 16 KB of a body. The limits are twice those of the API, so that
 * smaller requests get the API's own error, which names the limit. Only API Gateway and the functions limit chunked requests.
 */
const largeForm = {
  andStatement: { statements: [isForm, matches("content-length", atLeast(2 * limits.importBytes))] },
};
const largeBody = {
  andStatement: {
    statements: [{ notStatement: { statement: isForm } }, matches("content-length", atLeast(2 * limits.bodyBytes))],
  },
};

/** Returns a regular expression that matches all whole numbers from `least` on. `least` must be a digit followed by zeros. */
function atLeast(least: number): string {
  const digits = String(least);
  const [first = ""] = digits;
  if (Number(first) * 10 ** (digits.length - 1) !== least) throw new Error(`${least} is not a digit followed by zeros`);
  return `^([${first}-9][0-9]{${digits.length - 1}}|[1-9][0-9]{${digits.length},})$`;
}

function managed(priority: number, name: string, counted: readonly string[]): CfnWebACL.RuleProperty {
  return {
    name,
    priority,
    overrideAction: { none: {} },
    statement: {
      managedRuleGroupStatement: {
        vendorName: "AWS",
        name,
        ...(counted.length > 0 && {
          ruleActionOverrides: counted.map((rule) => ({ name: rule, actionToUse: { count: {} } })),
        }),
      },
    },
    visibilityConfig: visibility(name),
  };
}
