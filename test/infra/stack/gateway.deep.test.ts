/** Tests the OpenAPI definition of API Gateway: the gateway's own errors, the methods, the authorizer, and the stage. */
import { ResponseType } from "aws-cdk-lib/aws-apigateway";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { Problem } from "#shared/problem.ts";
import { AUTHORIZATION_PATTERN } from "#shared/sessions/session-id.ts";
import type { Route } from "../../../infra/routes/route.ts";
import { authorizer, routes } from "../../../infra/routes/routes.ts";
import { methodsOf } from "../../../infra/stack/api-definition.ts";
import {
  at,
  closed,
  consoleOfIssuer,
  isFields,
  listed,
  synthesized,
  type Template,
  target,
  withBackups,
} from "../template.ts";

const template = await synthesized();

const definition = template.only("AWS::ApiGateway::RestApi").properties.Body;
const entries = (value: unknown): [string, unknown][] => (isFields(value) ? Object.entries(value) : []);

const gatewayAnswers = entries(at(definition, "x-amazon-apigateway-gateway-responses")).map(([type, answer]) => ({
  type,
  answer,
}));

const ANY = "x-amazon-apigateway-any-method";

const methods = entries(at(definition, "paths")).flatMap(([path, item]) =>
  entries(item).map(([verb, operation]) => ({
    path,
    method: verb === ANY ? "ANY" : verb.toUpperCase(),
    operation,
    integration: at(operation, "x-amazon-apigateway-integration"),
  })),
);
const ofType = (type: string) => methods.filter(({ integration }) => at(integration, "type") === type);
/**
 * The methods that call functions of the route table, without HEAD and the catch-all methods, whose answer is 405 (hostile.deep.test.ts).
 */
const proxied = ofType("aws_proxy").filter(({ method }) => method !== "ANY" && method !== "HEAD");

function fileOf(integration: unknown): string {
  const [invoked] = listed(at(integration, "uri", "Fn::Join", 1)).filter((part) => /Function/.test(target(part) ?? ""));
  return String(template.resources[template.invokedBy(invoked) ?? ""]?.Metadata.file);
}

/** Returns the files of the functions that a role may invoke. */
function invokedWith(roleArn: unknown): string[] {
  const policies = template.resources[target(roleArn) ?? ""]?.Properties.Policies;
  const allowed = listed(at(policies, 0, "PolicyDocument", "Statement", "0", "Resource"));
  return allowed.map((arn) => String(template.resources[template.invokedBy(arn) ?? ""]?.Metadata.file));
}

const answerOf = (type: string) => at(definition, "x-amazon-apigateway-gateway-responses", type);
const headerOf = (answer: unknown, name: string) => at(answer, "responseParameters", `gatewayresponse.header.${name}`);
const preflightHeader = (integration: unknown, name: string) =>
  at(integration, "responses", "default", "responseParameters", `method.response.header.${name}`);

const problemIn = (answer: unknown) =>
  z.parse(Problem, JSON.parse(String(at(answer, "responseTemplates", "application/problem+json"))));

describe("errors of API Gateway", () => {
  it("have a template of the project for every response type", () => {
    const known = Object.values(ResponseType).flatMap((type) =>
      type instanceof ResponseType ? [type.responseType] : [],
    );
    expect(known.length).toBeGreaterThan(15);
    expect(gatewayAnswers.map(({ type }) => type).toSorted()).toEqual(known.toSorted());
  });

  it("are problem bodies with the status of the answer, a known code and the request's id, and no cache stores them", () => {
    for (const { type, answer } of gatewayAnswers) {
      expect(Object.keys(at(answer, "responseTemplates") ?? {}), type).toEqual(["application/problem+json"]);
      const problem = problemIn(answer);
      expect(String(problem.status), type).toBe(at(answer, "statusCode"));
      expect(problem.type, type).toBe(`urn:problem:${problem.code}`);
      expect(problem.requestId, type).toBe("$context.requestId");
      expect(headerOf(answer, "X-Request-Id"), type).toBe("context.requestId");
      expect(headerOf(answer, "Cache-Control"), type).toBe("'no-store'");
    }
  });

  it("are 404 for an unknown path, 429 with Retry-After for a throttled request, 504 for a late function", () => {
    const answerTo = (type: string) => {
      const { status, code } = problemIn(answerOf(type));
      const retryAfter = headerOf(answerOf(type), "Retry-After");
      return [status, code, ...(retryAfter === undefined ? [] : [retryAfter])];
    };
    expect(answerTo("MISSING_AUTHENTICATION_TOKEN")).toEqual([404, "not_found"]);
    expect(answerTo("RESOURCE_NOT_FOUND")).toEqual([404, "not_found"]);
    expect(answerTo("REQUEST_TOO_LARGE")).toEqual([413, "payload_too_large"]);
    expect(answerTo("UNSUPPORTED_MEDIA_TYPE")).toEqual([415, "unsupported_media_type"]);
    expect(answerTo("THROTTLED")).toEqual([429, "rate_limited", "'1'"]);
    expect(answerTo("INTEGRATION_FAILURE")).toEqual([502, "internal"]);
    expect(answerTo("INTEGRATION_TIMEOUT")).toEqual([504, "unavailable"]);
  });

  it("are 401 with a challenge for a bad token, and 503 with Retry-After when the authorizer fails", () => {
    const challengeOf = (type: string) => {
      const answer = answerOf(type);
      return [at(answer, "statusCode"), headerOf(answer, "Retry-After"), headerOf(answer, "WWW-Authenticate")];
    };
    expect(challengeOf("UNAUTHORIZED")).toEqual(["401", undefined, "'Bearer'"]);
    expect(challengeOf("ACCESS_DENIED")).toEqual(["401", undefined, "context.authorizer.challenge"]);
    for (const type of ["AUTHORIZER_FAILURE", "AUTHORIZER_CONFIGURATION_ERROR"]) {
      expect(challengeOf(type)).toEqual(["503", "'1'", undefined]);
    }
  });

  it("contain nothing of the request except its id; only the answer to a denied token contains the authorizer's reason", () => {
    const withReason = gatewayAnswers.filter(({ answer }) => JSON.stringify(answer).includes("context.authorizer"));
    expect(withReason.map(({ type }) => type)).toEqual(["ACCESS_DENIED"]);
    const templates = [
      ...gatewayAnswers.map(({ answer }) => at(answer, "responseTemplates")),
      ...methods.flatMap(({ integration }) => [at(integration, "requestTemplates"), at(integration, "responses")]),
    ];
    const variables = JSON.stringify(templates).match(/\$[\w.!{[]+/g) ?? [];
    expect(new Set(variables)).toEqual(new Set(["$context.requestId", "$context.authorizer.reason"]));
  });
});

describe("methods", () => {
  const byPath = (table: readonly Route[]) => Map.groupBy(table, ({ path }) => path);

  it("are those of the route table, each answered by its own function", () => {
    const calls = proxied.map(({ path, method, integration }) => `${method} ${path} ${fileOf(integration)}`);
    expect(calls.toSorted()).toEqual(routes.map(({ method, path, file }) => `${method} ${path} ${file}`).toSorted());
  });

  it("stream exactly as the route table says, and wait longer than the function may run", () => {
    expect(routes.filter(({ streamed }) => streamed).map(({ path }) => path)).toContain("/api/prospects/pins");
    for (const { path, method, integration } of proxied) {
      const route = routes.find((candidate) => candidate.path === path && candidate.method === method);
      const { properties: run } = template.functionOf(route?.file ?? "");
      const isStreamed = route?.streamed === true;
      expect(at(integration, "responseTransferMode"), path).toBe(isStreamed ? "STREAM" : undefined);
      const action = isStreamed ? "2021-11-15/functions/" : "2015-03-31/functions/";
      expect(JSON.stringify(at(integration, "uri")), path).toContain(action);
      expect(JSON.stringify(at(integration, "uri")), path).toContain(
        isStreamed ? "/response-streaming-invocations" : "/invocations",
      );
      expect(Number(at(integration, "timeoutInMillis") ?? 29_000), path).toBeGreaterThan(1_000 * Number(run.Timeout));
    }
  });

  it("answer preflights of the one configured origin without a function, and allow the header Authorization", () => {
    const known = ofType("mock").filter(({ path }) => byPath(routes).has(path));
    expect(known.map(({ method }) => method)).toEqual([...byPath(routes).keys()].map(() => "OPTIONS"));
    for (const { path, integration } of known) {
      expect(at(integration, "requestTemplates"), path).toEqual({ "application/json": '{"statusCode":204}' });
      // For API Gateway, a request without a body is JSON, which this API declares as a binary type. Without the conversion to text, API
      // Gateway would answer 500.
      expect(at(integration, "contentHandling"), path).toBe("CONVERT_TO_TEXT");
      expect(at(integration, "responses", "default", "statusCode"), path).toBe("204");
      expect(preflightHeader(integration, "Access-Control-Allow-Origin"), path).toBe("'https://app.example.com'");
      expect(preflightHeader(integration, "Access-Control-Allow-Headers"), path).toContain("Authorization");
      expect(preflightHeader(integration, "Access-Control-Allow-Methods"), path).toBe(
        `'${(byPath(routes).get(path) ?? []).flatMap(methodsOf).join(",")}'`,
      );
    }
    for (const { type, answer } of gatewayAnswers) {
      expect(headerOf(answer, "Access-Control-Allow-Origin"), type).toBeDefined();
    }
  });

  it("answer preflights of unknown paths, so that the page can read the answer 404", () => {
    const unknown = methods.filter(({ path }) => !byPath(routes).has(path));
    const parents = new Set(
      routes.flatMap(({ path }) => path.split("/").map((_, i, parts) => parts.slice(0, i).join("/") || "/")),
    );
    const expected = [...parents, "/{proxy+}"].filter((path) => !byPath(routes).has(path));
    expect(unknown.map(({ path, method }) => `${method} ${path}`).toSorted()).toEqual(
      expected.map((path) => `OPTIONS ${path}`).toSorted(),
    );
    for (const { path, integration } of unknown) {
      expect(at(integration, "type"), path).toBe("mock");
      expect(preflightHeader(integration, "Access-Control-Allow-Origin"), path).toBe("'https://app.example.com'");
      expect(preflightHeader(integration, "Access-Control-Allow-Methods"), path).toBe(
        "'GET,HEAD,POST,PUT,PATCH,DELETE'",
      );
    }
    const notFound = answerOf("MISSING_AUTHENTICATION_TOKEN");
    expect(headerOf(notFound, "Access-Control-Allow-Origin")).toBe("'https://app.example.com'");
    expect(headerOf(notFound, "Access-Control-Expose-Headers")).toContain("WWW-Authenticate");
  });

  it("send no CORS header if no origin is configured", async () => {
    const { resources, only } = await synthesized(closed);
    expect(JSON.stringify(resources)).not.toContain("Access-Control");
    expect(JSON.stringify(only("AWS::ApiGateway::RestApi").properties.Body)).not.toMatch(/options/i);
  });
});

describe("the authorizer", () => {
  const scheme = at(definition, "components", "securitySchemes", "caller");
  const settings = at(scheme, "x-amazon-apigateway-authorizer");

  it("verifies the caller of every route except the public documents, the health check and the sign-in of the console", () => {
    for (const { path, method, operation } of proxied) {
      const route = routes.find((candidate) => candidate.path === path && candidate.method === method);
      const isPublic =
        /^\/(?:docs|openapi(?:-3\.0)?\.json|health(?:\/webhooks)?)$/.test(path) || path.startsWith("/api/session/");
      expect(at(operation, "security"), `${method} ${path}`).toEqual(
        isPublic ? undefined : [{ caller: [] }, { company: [] }],
      );
      expect(route?.public === true, path).toBe(isPublic);
    }
  });

  it("is one function, called only if the Authorization header has the form of a bearer token or a session", () => {
    expect(scheme).toMatchObject({ type: "apiKey", name: "Authorization", in: "header" });
    expect(settings).toMatchObject({ type: "token", identityValidationExpression: AUTHORIZATION_PATTERN });
    const uri = at(settings, "authorizerUri");
    expect(JSON.stringify(uri)).toContain("2015-03-31/functions/");
    expect(fileOf({ uri })).toBe(authorizer.file);
    expect(invokedWith(at(settings, "authorizerCredentials"))).toContain(authorizer.file);
  });

  it("is asked again after 60 s, and ends before API Gateway stops waiting", () => {
    expect([at(settings, "authorizerResultTtlInSeconds"), limits.authorizationCacheSeconds]).toEqual([60, 60]);
    expect(Number(template.functionOf(authorizer.file).properties.Timeout)).toBeLessThan(29);
  });

  it("knows the address of the keys: the pool's documented path, or the configured address", async () => {
    const keysOf = ({ variablesOf }: Template) => at(variablesOf(authorizer.file), "JWKS_URI");
    const pool = at(template.variablesOf(authorizer.file), "ISSUER");
    expect(keysOf(template)).toEqual({ "Fn::Join": ["", [pool, "/.well-known/jwks.json"]] });
    expect(keysOf(await synthesized(closed))).toBeUndefined();
    expect(keysOf(await synthesized(consoleOfIssuer))).toBe("https://keys.example/jwks");
  });
});

it("each function is invoked with a role that may invoke it", () => {
  const invoking = methods.filter(({ integration }) => at(integration, "type") === "aws_proxy");
  expect(invoking.length).toBeGreaterThan(routes.length);
  for (const { path, method, integration } of invoking) {
    expect(invokedWith(at(integration, "credentials")), `${method} ${path}`).toContain(fileOf(integration));
  }
});

describe("stage", () => {
  const stage = template.only("AWS::ApiGateway::Stage").properties;

  it("is throttled and logs one JSON line per request, without query, headers or addresses", () => {
    expect(at(stage, "MethodSettings", 0)).toMatchObject({
      ResourcePath: "/*",
      HttpMethod: "*",
      DataTraceEnabled: false,
      ThrottlingRateLimit: expect.any(Number),
      ThrottlingBurstLimit: expect.any(Number),
    });
    const line: unknown = JSON.parse(String(at(stage, "AccessLogSetting", "Format")));
    const logged = isFields(line) ? Object.values(line).map(String) : [];
    for (const name of ["requestId", "authorizer.companyId", "authorizer.userId"])
      expect(logged).toContain(`$context.${name}`);
    for (const value of logged)
      expect(value).not.toMatch(
        /identity|authorizer\.(?!(?:request|company|user)Id$)|querystring|\$input|context\.path$|error\.message/,
      );
  });

  it("gets a new deployment when a route or an answer changes", async () => {
    const deploymentOf = ({ all }: Template) => all("AWS::ApiGateway::Deployment").map(({ id }) => id);
    expect(deploymentOf(template)).toHaveLength(1);
    expect(deploymentOf(await synthesized(withBackups))).toEqual(deploymentOf(template));
    expect(deploymentOf(await synthesized(closed))).not.toEqual(deploymentOf(template));
  });

  it("has separate throttles for the routes with a rate of their own, so that other routes keep their rate", () => {
    const [common, ...all] = listed(at(stage, "MethodSettings"));
    const limited = routes.filter(({ rate }) => rate !== undefined);
    const own = all.slice(0, limited.flatMap(methodsOf).length);
    const sum = own.reduce<number>((total, setting) => total + Number(at(setting, "ThrottlingRateLimit")), 0);
    expect(sum).toBeLessThan(Number(at(common, "ThrottlingRateLimit")) / 2);
    expect(own.map((setting) => `${at(setting, "HttpMethod")} ${at(setting, "ResourcePath")}`)).toEqual(
      limited.flatMap((route) => methodsOf(route).map((method) => `${method} /${route.path.replaceAll("/", "~1")}`)),
    );
    for (const setting of own) {
      expect(at(setting, "ThrottlingRateLimit")).toBeLessThanOrEqual(Number(at(common, "ThrottlingRateLimit")) / 5);
      expect(at(setting, "ThrottlingBurstLimit")).toBeGreaterThan(0);
    }
    for (const setting of all) {
      // A method with its own settings does not inherit the stage's settings, so its settings must repeat them.
      for (const name of ["LoggingLevel", "DataTraceEnabled"]) expect(at(setting, name)).toBe(at(common, name));
    }
  });
});

describe("the definition", () => {
  it("compresses buffered answers of at least a minimum size, and passes files on as bytes", () => {
    expect(at(definition, "x-amazon-apigateway-minimum-compression-size")).toBe(1_024);
    expect(at(definition, "x-amazon-apigateway-binary-media-types")).toEqual([
      "multipart/form-data",
      "application/json",
      "application/geo+json",
    ]);
  });

  it("replaces the whole API at each deployment, keeps the endpoint regional, and has the name that the metrics use", () => {
    const api = template.only("AWS::ApiGateway::RestApi");
    expect(api.properties).toMatchObject({
      Mode: "overwrite",
      Parameters: { endpointConfigurationTypes: "REGIONAL" },
      EndpointConfiguration: { Types: ["REGIONAL"] },
    });
    const [alarm] = template
      .all("AWS::CloudWatch::Alarm")
      .filter(({ properties }) => properties.Namespace === "AWS/ApiGateway");
    expect(at(alarm?.properties, "Dimensions", 0)).toEqual({
      Name: "ApiName",
      Value: at(definition, "info", "title"),
    });
    expect(api.properties.Name).toBe(at(definition, "info", "title"));
  });
});
