/** What API Gateway answers without a function has the same body and headers as everything else. */
import { ResponseType } from "aws-cdk-lib/aws-apigateway";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { Problem } from "#shared/http/problem.ts";
import { type Route, routes } from "../../infra/routes.ts";
import { at, isFields, ownIdentity, synthesized, type Template, target } from "./template.ts";

let template: Template;
beforeAll(async () => {
  template = await synthesized();
});

const gatewayAnswers = () => template.all("AWS::ApiGateway::GatewayResponse").map(({ properties }) => properties);

/** The path of a resource, from its parents. */
function pathOf(resourceId: unknown): string {
  const resource = template.resources[target(resourceId) ?? ""];
  if (resource?.Type !== "AWS::ApiGateway::Resource") return "";
  return `${pathOf(resource.Properties.ParentId)}/${String(resource.Properties.PathPart)}`;
}

const methods = () =>
  template.all("AWS::ApiGateway::Method").map(({ properties }) => ({
    path: pathOf(properties.ResourceId),
    method: String(properties.HttpMethod),
    properties,
  }));
const mocks = (method: string) =>
  methods().filter((entry) => entry.method === method && at(entry.properties, "Integration", "Type") === "MOCK");

const Responses = z.array(z.looseObject({ StatusCode: z.string(), SelectionPattern: z.optional(z.string()) }));

/** What a mock answers to a verb: its request template gives a status, which the one response with that pattern, or without any, takes. */
function mockAnswer(properties: unknown, verb: string) {
  const template = String(at(properties, "Integration", "RequestTemplates", "application/json"));
  const [, asked, then, otherwise] = /^#if\(\$context\.httpMethod == "(\w+)"\)(.*)#else(.*)#end$/.exec(template) ?? [];
  const chosen = asked === undefined ? template : asked === verb ? then : otherwise;
  const status = String(at(JSON.parse(String(chosen)), "statusCode"));
  const responses = Responses.parse(at(properties, "Integration", "IntegrationResponses"));
  const response =
    responses.find(({ SelectionPattern: pattern }) => pattern === status) ??
    responses.find(({ SelectionPattern: pattern }) => pattern === undefined);
  return {
    status: response?.StatusCode,
    header: (name: string) => at(response, "ResponseParameters", `method.response.header.${name}`),
    body: String(at(response, "ResponseTemplates", "application/json")),
  };
}

const parseProblem = (body: string) => z.parse(Problem, JSON.parse(body));

describe("errors of API Gateway", () => {
  it("are re-templated for every response type that there is", () => {
    const known = Object.values(ResponseType).flatMap((type) =>
      type instanceof ResponseType ? [type.responseType] : [],
    );
    expect(known.length).toBeGreaterThan(15);
    expect(
      gatewayAnswers()
        .map(({ ResponseType: type }) => type)
        .toSorted(),
    ).toEqual(known.toSorted());
  });

  it("are problem bodies with the status of the answer, a code of the list and the request's id", () => {
    for (const answer of gatewayAnswers()) {
      const type = String(answer.ResponseType);
      expect(Object.keys(answer.ResponseTemplates ?? {}), type).toEqual(["application/problem+json"]);
      const problem = parseProblem(String(at(answer, "ResponseTemplates", "application/problem+json")));
      expect(String(problem.status), type).toBe(answer.StatusCode);
      expect(problem.type, type).toBe(`urn:problem:${problem.code}`);
      expect(problem.requestId, type).toBe("$context.requestId");
      expect(at(answer, "ResponseParameters", "gatewayresponse.header.X-Request-Id"), type).toBe("context.requestId");
    }
  });

  it("tell an unknown path 404, a full gateway 429 with Retry-After, a late function 504", () => {
    const answerTo = (type: string) => {
      const answer = gatewayAnswers().find((candidate) => candidate.ResponseType === type);
      const { status, code } = parseProblem(String(at(answer, "ResponseTemplates", "application/problem+json")));
      const retryAfter = at(answer, "ResponseParameters", "gatewayresponse.header.Retry-After");
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

  it("read nothing of the request but its id, and a mock its verb", () => {
    const templates = [
      ...gatewayAnswers().map((answer) => at(answer, "ResponseTemplates")),
      ...methods().flatMap(({ properties }) => [
        at(properties, "Integration", "RequestTemplates"),
        at(properties, "Integration", "IntegrationResponses"),
      ]),
    ];
    const variables = JSON.stringify(templates).match(/\$[\w.!{[]+/g) ?? [];
    expect(new Set(variables)).toEqual(new Set(["$context.requestId", "$context.httpMethod"]));
  });
});

describe("methods", () => {
  const byPath = (table: readonly Route[]) => Map.groupBy(table, ({ path }) => path);

  it("are those of the route table, each answered by its own function", () => {
    const proxied = methods().filter(({ properties }) => at(properties, "Integration", "Type") === "AWS_PROXY");
    const calls = proxied.map(({ path, method, properties }) => {
      const uri = JSON.stringify(at(properties, "Integration", "Uri"));
      const [, id] = /"Fn::GetAtt":\["(\w+)","Arn"\]/.exec(uri) ?? [];
      return `${method} ${path} ${String(template.resources[id ?? ""]?.Metadata.file)}`;
    });
    expect(calls.toSorted()).toEqual(routes.map(({ method, path, file }) => `${method} ${path} ${file}`).toSorted());
  });

  it("stream exactly where the route table says so, and wait longer than the function may run", () => {
    const proxied = methods().filter(({ properties }) => at(properties, "Integration", "Type") === "AWS_PROXY");
    expect(routes.filter(({ streamed }) => streamed).map(({ path }) => path)).toContain("/api/prospects/pins");
    for (const { path, method, properties } of proxied) {
      const integration = at(properties, "Integration");
      const route = routes.find((candidate) => candidate.path === path && candidate.method === method);
      const { properties: run } = template.functionOf(route?.file ?? "");
      const isStreamed = route?.streamed === true;
      expect(at(integration, "ResponseTransferMode"), path).toBe(isStreamed ? "STREAM" : undefined);
      const action = isStreamed ? "2021-11-15/functions/" : "2015-03-31/functions/";
      expect(JSON.stringify(at(integration, "Uri")), path).toContain(action);
      expect(JSON.stringify(at(integration, "Uri")), path).toContain(
        isStreamed ? "/response-streaming-invocations" : "/invocations",
      );
      expect(Number(at(integration, "TimeoutInMillis") ?? 29_000), path).toBeGreaterThan(1_000 * Number(run.Timeout));
    }
  });

  it("that a known path does not have are answered 405 with Allow", () => {
    expect(
      mocks("ANY")
        .map(({ path }) => path)
        .toSorted(),
    ).toEqual([...byPath(routes).keys()].toSorted());
    for (const { path, properties } of mocks("ANY")) {
      const { status, header, body } = mockAnswer(properties, "PUT");
      const allowed = [...(byPath(routes).get(path) ?? []).map(({ method }) => method), "OPTIONS"];
      expect(status, path).toBe("405");
      expect(header("Allow"), path).toBe(`'${allowed.join(", ")}'`);
      expect(header("Content-Type"), path).toBe("'application/problem+json'");
      expect(header("X-Request-Id"), path).toBe("context.requestId");
      expect(parseProblem(body), path).toMatchObject({ status: 405, code: "method_not_allowed" });
    }
  });

  it("answer preflights of the one configured origin, and Authorization is among the allowed headers", () => {
    expect(mocks("ANY")).toHaveLength(byPath(routes).size);
    for (const { path, properties } of mocks("ANY")) {
      const { status, header } = mockAnswer(properties, "OPTIONS");
      expect(status, path).toBe("204");
      expect(header("Access-Control-Allow-Origin"), path).toBe("'https://app.example.com'");
      expect(header("Access-Control-Allow-Headers"), path).toContain("Authorization");
    }
    for (const answer of gatewayAnswers()) {
      expect(at(answer, "ResponseParameters", "gatewayresponse.header.Access-Control-Allow-Origin")).toBeDefined();
    }
  });

  it("without configured origins give no CORS header at all", async () => {
    const closed = await synthesized({ ...ownIdentity, allowedOrigins: [] });
    expect(JSON.stringify(closed.resources)).not.toContain("Access-Control");
    expect(JSON.stringify(closed.resources)).not.toContain("OPTIONS");
  });
});

describe("stage", () => {
  const stage = () => template.all("AWS::ApiGateway::Stage")[0]?.properties;

  it("is throttled and logs one JSON line per request, without query, headers or addresses", () => {
    expect(at(stage(), "MethodSettings", 0)).toMatchObject({
      ResourcePath: "/*",
      HttpMethod: "*",
      DataTraceEnabled: false,
      ThrottlingRateLimit: expect.any(Number),
      ThrottlingBurstLimit: expect.any(Number),
    });
    const line: unknown = JSON.parse(String(at(stage(), "AccessLogSetting", "Format")));
    const logged = isFields(line) ? Object.values(line).map(String) : [];
    expect(logged).toContain("$context.requestId");
    for (const value of logged)
      expect(value).not.toMatch(/identity|authorizer|querystring|\$input|context\.path$|error\.message/);
  });

  it("is deployed anew when a route or an answer changes", () => {
    const [api] = template.all("AWS::ApiGateway::Deployment");
    const awaited = [api?.resource.DependsOn].flat();
    for (const type of ["AWS::ApiGateway::Method", "AWS::ApiGateway::GatewayResponse"]) {
      for (const { id } of template.all(type)) expect(awaited).toContain(id);
    }
  });
});
