/** Tests how the local runtime reads templates. If it does not support a setting, it must fail with an error that names the setting. */
import { describe, expect, test } from "vitest";
import { describeStack } from "../../../infra/local/control.ts";
import { nameOfArn } from "../../../infra/local/template/names.ts";
import { readStack } from "../../../infra/local/template/stack.ts";
import { at, isFields, ownIdentity, synthesized } from "../template.ts";
import { fixtureTemplate } from "./fixture.ts";

const endpoint = "http://127.0.0.1:1";
type Template = ReturnType<typeof fixtureTemplate>;

function changed(change: (resources: Template["Resources"]) => void): () => unknown {
  const template = fixtureTemplate();
  change(template.Resources);
  return () => readStack([template], endpoint, "/assembly");
}

function set(id: string, name: string, value: unknown): (resources: Template["Resources"]) => void {
  return (resources) => {
    const resource = resources[id];
    if (resource === undefined) throw new Error(`no ${id}`);
    resource.Properties[name] = value;
  };
}

test("references to resources become addresses and ARNs of the local service", () => {
  const stack = readStack([fixtureTemplate()], endpoint, "/assembly");
  expect(stack.functions[0]).toMatchObject({
    name: "Echo",
    directory: "/assembly/echo",
    Environment: { Variables: { SEEN_URL: "http://127.0.0.1:1/000000000000/Seen" } },
  });
  expect(stack.eventSources[0]).toMatchObject({
    EventSourceArn: "arn:aws:dynamodb:us-east-1:000000000000:table/Table/stream/local",
  });
});

describe("refuses", () => {
  test.each([
    ["a value it cannot honour", set("Echo", "Runtime", "python3.14"), "Echo.Runtime"],
    ["logs as text", set("Echo", "LoggingConfig", { LogFormat: "Text" }), "Echo.LoggingConfig.LogFormat"],
    ["a nested setting", set("OfQueue", "ScalingConfig", { MinimumConcurrency: 1 }), "OfQueue.ScalingConfig"],
    ["a stream setting", set("OfTable", "TumblingWindowInSeconds", 5), "OfTable.TumblingWindowInSeconds"],
    ["an intrinsic", set("Echo", "Timeout", { "Fn::GetAZs": "" }), "Fn::GetAZs"],
    ["a reference to a missing resource", set("Echo", "FunctionName", { Ref: "Nobody" }), "Ref Nobody"],
  ])("%s", (_, change, message) => {
    expect(changed(change)).toThrow(message);
  });

  test("an unknown resource type and an unknown property, and reports all faults at once", () => {
    const faulty = changed((resources) => {
      resources.Alien = { Type: "AWS::Kinesis::Stream", Properties: {} };
      set("Echo", "Layers", [])(resources);
    });
    expect(faulty).toThrow("Alien: resources of type AWS::Kinesis::Stream are not supported");
    expect(faulty).toThrow("Echo.Layers");
  });
});

/** Returns a function that reads the template with `value` at `place` in its API definition (keys, separated by blanks). */
function defined(value: unknown, place: string): () => unknown {
  const path = place.split(" ");
  return changed(({ Api }) => {
    const parent = at(Api?.Properties.Body, ...path.slice(0, -1));
    if (!isFields(parent)) throw new Error(`no ${place}`);
    parent[path.at(-1) ?? ""] = value;
  });
}

describe("refuses in a definition", () => {
  const operation = "paths /streamed get";
  const integration = "x-amazon-apigateway-integration";
  const uri = { "Fn::GetAtt": ["Echo", "Arn"] };
  const answering = { [integration]: { type: "aws_proxy", httpMethod: "POST", uri } };
  const ofLambda = `${operation} ${integration}`;
  const off = { url: "/", "x-amazon-apigateway-endpoint-configuration": { disableExecuteApiEndpoint: true } };
  const scheme = "components securitySchemes fixture";
  const authorizer = `${scheme} x-amazon-apigateway-authorizer`;
  const keyOnly = { type: "apiKey", name: "x-api-key", in: "header" };
  const ttl = "authorizerResultTtlInSeconds";

  test.each([
    ["a key that only API Gateway supports", {}, "x-amazon-apigateway-policy", "x-amazon-apigateway-policy"],
    ["a missing authorizer", [{ token: [] }], `${operation} security`, "no security scheme is named token"],
    ["an unknown method", answering, "paths /streamed trace", "trace"],
    ["another kind of integration", "http_proxy", `${ofLambda} type`, integration],
    ["a setting of an integration", "VPC_LINK", `${ofLambda} connectionType`, "connectionType"],
    ["a time-out above that of streams", 900_001, `${ofLambda} timeoutInMillis`, "timeoutInMillis"],
    ["an error without a template", {}, "x-amazon-apigateway-gateway-responses THROTTLED", "THROTTLED"],
    ["a newer OpenAPI", "3.1.0", "openapi", "openapi"],
    ["an API whose own URL, the only one of the local service, is off", [off], "servers", "disableExecuteApiEndpoint"],
    ["an authorizer of another type", "request", `${authorizer} type`, "type"],
    ["a scheme of another type", { type: "http", scheme: "bearer" }, scheme, "securitySchemes.fixture.type"],
    ["a token that is not in a header", "query", `${scheme} in`, "securitySchemes.fixture.in"],
    ["a pattern for part of the header", "Bearer .*", `${authorizer} identityValidationExpression`, "begin with ^"],
    ["policies cached for more than an hour", 3_601, `${authorizer} ${ttl}`, ttl],
    ["an authorizer for an API key", "x-api-key", `${scheme} name`, "must be an authorizer, or an API key"],
    ["no authorizer", keyOnly, scheme, "must have one authorizer"],
  ])("%s", (_, value, place, message) => {
    expect(defined(value, place)).toThrow(message);
  });

  test("a method setting of an unknown method", () => {
    const limits = { ThrottlingRateLimit: 1, ThrottlingBurstLimit: 1 };
    const settings = [{ HttpMethod: "GET", ResourcePath: "/~1nowhere", ...limits }];
    expect(changed(set("Live", "MethodSettings", settings))).toThrow("Live.MethodSettings: GET /~1nowhere");
  });
});

describe("among several templates", () => {
  const data = {
    Resources: { Store: { Type: "AWS::DynamoDB::Table", Properties: fixtureTemplate().Resources.Table?.Properties } },
    Outputs: { Exported: { Value: { "Fn::GetAtt": ["Store", "StreamArn"] }, Export: { Name: "data:stream" } } },
  };
  const service = (name: string) => {
    const template = fixtureTemplate();
    set("OfTable", "EventSourceArn", { "Fn::ImportValue": name })(template.Resources);
    return template;
  };

  test("a later template uses exports of an earlier template, and the outputs of the last template are those of the service", () => {
    const outputs = { Outputs: { TableName: { Value: "any" } } };
    const stack = readStack([data, { ...service("data:stream"), ...outputs }], endpoint, "/assembly");
    expect(stack.eventSources[0]?.EventSourceArn).toBe(
      "arn:aws:dynamodb:us-east-1:000000000000:table/Store/stream/local",
    );
    expect(stack.outputs).toEqual({ TableName: "any" });
  });

  test("no template uses exports of a later template or of itself", () => {
    expect(() => readStack([data, service("data:table")], endpoint, "/assembly")).toThrow("Fn::ImportValue data:table");
    expect(() => readStack([service("data:stream"), data], endpoint, "/assembly")).toThrow(
      "Fn::ImportValue data:stream",
    );
  });

  test("two resources cannot have the same logical id", () => {
    const same = { Resources: { Table: data.Resources.Store } };
    expect(() => readStack([same, fixtureTemplate()], endpoint, "/assembly")).toThrow("Table: two templates");
  });
});

const config = {
  ...ownIdentity,
  issuer: "http://127.0.0.1:3000/local/oidc",
  audience: ["local"],
  alarmEmail: undefined,
  capacity: { ...ownIdentity.capacity, reserved: {} },
  watch: { runbook: "docs/runbook.md", canary: false },
  webAcl: false,
};
const { stacks } = await synthesized(config);
const stack = readStack([stacks.data, stacks.service], endpoint, "/assembly");

test("API Gateway accepts the paths: their characters, and one name for the parameters at one position", () => {
  const paths = [...new Set(stack.api.methods.map(({ path }) => path))];
  expect(paths.filter((path) => !/^\/(?:(?:[\w.:-]+|\{\w+\+?\})(?:\/|$))*$/.test(path))).toEqual([]);
  const parameters = paths.flatMap((path) =>
    [...path.matchAll(/\{\w+\+?\}/g)].map(({ 0: name, index }) => ({ name, parent: path.slice(0, index) })),
  );
  const namesByParent = Map.groupBy(parameters, ({ parent }) => parent);
  const ambiguous = [...namesByParent].filter(([, own]) => new Set(own.map(({ name }) => name)).size > 1);
  expect(ambiguous.map(([parent]) => parent)).toEqual([]);
});

describe("aliases", () => {
  test("are resolved to their functions", () => {
    const publish = stack.functions.find(({ file }) => file === "events/publish");
    const names = stack.eventSources.map(({ FunctionName }) => FunctionName);
    expect(names).toContain(`arn:aws:lambda:us-east-1:000000000000:function:${publish?.name}:live`);
    const functions = new Set(stack.functions.map(({ name }) => name));
    expect(names.map(nameOfArn).filter((name) => !functions.has(name))).toEqual([]);
  });

  test("do not divide calls between two versions", () => {
    const name = { FunctionName: { Ref: "Echo" }, FunctionVersion: "1", Name: "live" };
    const divided = changed((resources) => {
      const Properties = { ...name, RoutingConfig: { AdditionalVersionWeights: [] } };
      resources.Two = { Type: "AWS::Lambda::Alias", Properties };
    });
    expect(divided).toThrow("Two.RoutingConfig");
  });
});

test("the outputs name the queue of deliveries and the queues that no function reads", () => {
  const servers = { kms: { endpoint: "" }, dynamoDbEndpoint: "", queues: { endpoint } };
  const own = { ApiUrl: "", Issuer: "", Audience: "" };
  const { DeliveryQueueUrl, DeadLetterQueueUrls } = describeStack(stack, servers, own);
  expect(DeliveryQueueUrl).toMatch(/\/DeliveriesQueue/);
  expect(DeadLetterQueueUrls).toHaveLength(stack.queues.length - 4);
});
