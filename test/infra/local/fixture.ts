/** A template with a resource of each type, for tests of the local runtime. Its functions report what the runtime passes to them. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ReceiveMessageCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { documentsAt, sqsAt } from "../../../infra/local/servers/clients.ts";
import { type LocalService, startLocal } from "../../../infra/local/service.ts";
import { queueUrl } from "../../../infra/local/template/names.ts";

type Fields = Record<string, unknown>;
interface Resource {
  readonly Type: string;
  readonly Properties: Fields;
  readonly Metadata?: Fields;
}

const getAtt = (id: string, name: string) => ({ "Fn::GetAtt": [id, name] });
const ref = (id: string) => ({ Ref: id });

/** The beginning of each function's source code. `seen` sends a value to a queue, and the tests read the values from this queue. */
const prelude = `
const seen = (value) => fetch(process.env.AWS_ENDPOINT_URL_SQS, {
  method: "POST",
  headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.SendMessage" },
  body: JSON.stringify({ QueueUrl: process.env.SEEN_URL, MessageBody: JSON.stringify(value) }),
}).then((answer) => { if (!answer.ok) throw new Error("not sent"); });
`;
const code = {
  echo: `export const handler = async (event, context) => {
    const mode = event.queryStringParameters?.mode;
    if (mode === "throw") throw new Error("as asked");
    if (mode === "exit") process.exit(3);
    if (mode === "malformed") return { status: 200 };
    if (mode === "large") return { statusCode: 200, body: "x".repeat(7_000_000) };
    if (mode === "escaped") return { statusCode: 200, body: '"'.repeat(3_200_000) };
    if (mode === "encoded") return { statusCode: 200, headers: { "Content-Encoding": "identity" }, body: "a".repeat(2_000) };
    if (mode === "header") return { statusCode: 200, headers: { "X-Bad": "a\\r\\nb" }, body: "" };
    if (mode === "headers") return { statusCode: 200, headers: JSON.parse(event.body), body: "" };
    return { statusCode: 200, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...event, remaining: context.getRemainingTimeInMillis() }) };
  };`,
  short: "export const handler = () => new Promise((resolve) => setTimeout(resolve, 60_000));",
  authorize: `export const handler = async ({ authorizationToken, ...event }) => {
    const policy = (Effect, Resource, more) => ({ principalId: "somebody", ...more,
      policyDocument: { Version: "2012-10-17", Statement: [{ Action: "execute-api:Invoke", Effect, Resource }] } });
    const [api, stage] = event.methodArn.split("/");
    switch (authorizationToken.split(" ")[1]) {
      case "all": return policy("Allow", api + "/" + stage + "/*", { context: { text: "a", number: 1, yes: true, ...event } });
      case "other": return { ...policy("Allow", "*"), principalId: "somebody else" };
      case "one": return policy("Allow", event.methodArn);
      case "deny": return policy("Deny", "*", { context: { reason: "as asked" } });
      case "first":
      case "second":
      case "third":
        return policy("Allow", "*", { usageIdentifierKey: "fixture0throttle0key0" + authorizationToken.split(" ")[1] });
      case "nobody": return { ...policy("Allow", "*"), principalId: "" };
      case "object": return policy("Allow", "*", { context: { user: { id: 1 } } });
      case "nothing": return null;
      case "exit": process.exit(3);
      case "unauthorized": throw new Error("Unauthorized");
      default: throw new Error("Unauthorized: as asked");
    }
  };`,
  stream: `import { deflateRawSync } from "node:zlib";
  let started;
  const text = "0123456789".repeat(10_000);
  export const handler = awslambda.streamifyResponse(async (event, stream) => {
    const mode = event.queryStringParameters?.mode;
    if (mode === "throw") throw new Error("as asked");
    started ??= Date.now();
    const headers = { "X-Started": String(started), "X-Principal": event.requestContext.authorizer?.principalId ?? "" };
    const body = awslambda.HttpResponseStream.from(stream, {
      statusCode: 201,
      headers: { ...headers, ...(mode === "headers" && { "WWW-Authenticate": "Bearer", Via: "a", Server: "b" }) },
    });
    // The function computes while it waits for its reader, like a function that compresses the next piece of an answer.
    if (mode === "packing") {
      const packing = setInterval(() => { for (let i = 0; i < 40; i++) deflateRawSync("a"); });
      body.once("close", () => clearInterval(packing));
    }
    // The function ends the answer after a second, as a function does whose reader takes nothing.
    if (mode === "impatient") setTimeout(() => body.destroy(new Error("as asked")), 1_000);
    for (let i = 0; i < (["endless", "impatient"].includes(mode) ? 2_200 : 20); i++) {
      if (mode === "midway" && i === 10) throw new Error("as asked");
      if (!body.write(text)) await new Promise((resolve) => body.once("drain", resolve));
    }
    body.end();
  });`,
  publish: `${prelude}export const handler = async ({ Records }) => {
    const names = Records.map(({ dynamodb }) => dynamodb.Keys.pk.S);
    if (names.some((name) => name.startsWith("bad"))) throw new Error("as asked");
    await seen({ published: names });
    return { batchItemFailures: [] };
  };`,
  "events/deliver": `${prelude}export const handler = async ({ Records: [record] }) => {
    if (record.body.includes("poison")) throw new Error("as asked");
    await seen({ consumed: record.body, from: record.eventSource });
  };`,
  tick: `${prelude}export const handler = (event) => seen({ ticked: event });`,
} as const;

/** Time-out of all functions except `short`. It is so long that these functions never run out of time, even on a busy machine. */
export const TIMEOUT_SECONDS = 120;

const lambda = (file: keyof typeof code, Timeout = TIMEOUT_SECONDS): Resource => ({
  Type: "AWS::Lambda::Function",
  Properties: {
    Handler: "index.handler",
    Role: getAtt("Role", "Arn"),
    Runtime: "nodejs24.x",
    LoggingConfig: { LogFormat: "JSON" },
    Timeout,
    Environment: { Variables: { SEEN_URL: ref("Seen") } },
    Code: { S3Bucket: "any", S3Key: "any" },
  },
  Metadata: { "aws:asset:path": file, file },
});

const proxyUri = (id: string, streamed = false): Fields => ({
  "Fn::Join": [
    "",
    [
      `arn:aws:apigateway:us-east-1:lambda:path/${streamed ? "2021-11-15" : "2015-03-31"}/functions/`,
      getAtt(id, "Arn"),
      streamed ? "/response-streaming-invocations" : "/invocations",
    ],
  ],
});

const proxy = (id: string, streamed = false): Fields => ({
  "x-amazon-apigateway-integration": {
    type: "aws_proxy",
    httpMethod: "POST",
    ...(streamed && { responseTransferMode: "STREAM" }),
    uri: proxyUri(id, streamed),
  },
});

const refusal = (type: string, statusCode: string): Fields => ({
  statusCode,
  responseParameters: { "gatewayresponse.header.X-Request-Id": "context.requestId" },
  responseTemplates: { "application/problem+json": `{"type":"${type}","id":"$context.requestId"}` },
});

const preflight: Fields = {
  responses: { 204: { description: "", headers: { "X-Request-Id": {}, Vary: {} } } },
  "x-amazon-apigateway-integration": {
    type: "mock",
    passthroughBehavior: "never",
    contentHandling: "CONVERT_TO_TEXT",
    requestTemplates: { "application/json": '{"statusCode":204}' },
    responses: {
      default: {
        statusCode: "204",
        responseParameters: {
          "method.response.header.X-Request-Id": "context.requestId",
          "method.response.header.Vary": "'Origin'",
        },
        responseTemplates: { "application/json": "" },
      },
    },
  },
};

const id = { name: "id", in: "path", required: true, schema: { type: "string" } };

const security = [{ fixture: [] }];
const securityWithKey = [{ fixture: [] }, { key: [] }];

const authorizerScheme: Fields = {
  type: "apiKey",
  name: "Authorization",
  in: "header",
  "x-amazon-apigateway-authtype": "custom",
  "x-amazon-apigateway-authorizer": {
    type: "token",
    authorizerUri: proxyUri("Authorize"),
    identityValidationExpression: "^Bearer [a-z]+$",
    authorizerResultTtlInSeconds: 60,
  },
};

const definition: Fields = {
  openapi: "3.0.1",
  info: { title: "fixture", version: "1" },
  paths: {
    "/things/{id}": { "x-amazon-apigateway-any-method": { parameters: [id], ...proxy("Echo") } },
    "/short": { get: proxy("Short") },
    "/limited": { get: proxy("Echo"), options: preflight },
    "/streamed": { get: proxy("Stream", true) },
    "/guarded": { get: { ...proxy("Stream", true), security } },
    "/keyed": { get: { ...proxy("Echo"), security: securityWithKey } },
    "/keyed/{id}": {
      "x-amazon-apigateway-any-method": { parameters: [id], ...proxy("Echo"), security: securityWithKey },
    },
    "/guarded/{id}": { "x-amazon-apigateway-any-method": { parameters: [id], ...proxy("Echo"), security } },
  },
  components: {
    securitySchemes: { fixture: authorizerScheme, key: { type: "apiKey", name: "x-api-key", in: "header" } },
  },
  "x-amazon-apigateway-api-key-source": "AUTHORIZER",
  "x-amazon-apigateway-minimum-compression-size": 1_000,
  "x-amazon-apigateway-gateway-responses": {
    MISSING_AUTHENTICATION_TOKEN: refusal("MISSING_AUTHENTICATION_TOKEN", "404"),
    REQUEST_TOO_LARGE: refusal("REQUEST_TOO_LARGE", "413"),
    BAD_REQUEST_PARAMETERS: refusal("BAD_REQUEST_PARAMETERS", "400"),
    INTEGRATION_FAILURE: refusal("INTEGRATION_FAILURE", "502"),
    THROTTLED: refusal("THROTTLED", "429"),
    UNAUTHORIZED: refusal("UNAUTHORIZED", "401"),
    INVALID_API_KEY: refusal("INVALID_API_KEY", "403"),
    ACCESS_DENIED: refusal("ACCESS_DENIED", "403"),
    AUTHORIZER_FAILURE: refusal("AUTHORIZER_FAILURE", "503"),
    AUTHORIZER_CONFIGURATION_ERROR: refusal("AUTHORIZER_CONFIGURATION_ERROR", "503"),
    UNSUPPORTED_MEDIA_TYPE: refusal("UNSUPPORTED_MEDIA_TYPE", "415"),
    INTEGRATION_TIMEOUT: refusal("INTEGRATION_TIMEOUT", "504"),
  },
};

const queue = (Properties: Fields = {}): Resource => ({ Type: "AWS::SQS::Queue", Properties });

/** Requests per second. The rate is so low that, after the burst, the throttle allows no further request during the tests. */
const almostNever = 0.0001;

const api = {
  Api: { Type: "AWS::ApiGateway::RestApi", Properties: { Name: "fixture", Body: definition } },
  Live: {
    Type: "AWS::ApiGateway::Stage",
    Properties: {
      RestApiId: ref("Api"),
      StageName: "live",
      MethodSettings: [
        { HttpMethod: "*", ResourcePath: "/*", ThrottlingRateLimit: 10_000, ThrottlingBurstLimit: 10_000 },
        { HttpMethod: "GET", ResourcePath: "/~1limited", ThrottlingRateLimit: almostNever, ThrottlingBurstLimit: 2 },
      ],
    },
  },
};

const member = (key: string): Resource => ({
  Type: "AWS::ApiGateway::UsagePlanKey",
  Properties: { KeyId: ref(key), KeyType: "API_KEY", UsagePlanId: ref("Plan") },
});
const key = (Value: string): Resource => ({ Type: "AWS::ApiGateway::ApiKey", Properties: { Enabled: true, Value } });
const plan = {
  First: key("fixture0throttle0key0first"),
  Second: key("fixture0throttle0key0second"),
  // No usage plan contains this key, so the gateway refuses it.
  Third: key("fixture0throttle0key0third"),
  FirstInPlan: member("First"),
  SecondInPlan: member("Second"),
  Plan: {
    Type: "AWS::ApiGateway::UsagePlan",
    Properties: {
      Throttle: { RateLimit: almostNever, BurstLimit: 4 },
      ApiStages: [
        {
          ApiId: ref("Api"),
          Stage: ref("Live"),
          Throttle: { "/keyed/GET": { RateLimit: almostNever, BurstLimit: 1 } },
        },
      ],
    },
  },
};

const events = {
  OfTable: {
    Type: "AWS::Lambda::EventSourceMapping",
    Properties: {
      EventSourceArn: getAtt("Table", "StreamArn"),
      FunctionName: ref("Publish"),
      StartingPosition: "TRIM_HORIZON",
      BatchSize: 10,
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: 1,
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      DestinationConfig: { OnFailure: { Destination: getAtt("Failed", "Arn") } },
    },
  },
  OfQueue: {
    Type: "AWS::Lambda::EventSourceMapping",
    Properties: {
      EventSourceArn: getAtt("Work", "Arn"),
      FunctionName: ref("Consume"),
      BatchSize: 1,
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      ScalingConfig: { MaximumConcurrency: 2 },
    },
  },
  Hourly: {
    Type: "AWS::Events::Rule",
    Properties: {
      ScheduleExpression: "rate(60 minutes)",
      Targets: [{ Id: "tick", Arn: getAtt("Tick", "Arn"), Input: '{"assume":"messages-kept"}' }],
    },
  },
};

/** Returns a new copy of the template for each call, so that a test may change it. */
export function fixtureTemplate(): { Resources: Record<string, Resource> } {
  const keyPart = (AttributeName: string, KeyType: string): Fields => ({ AttributeName, KeyType });
  const Resources = {
    Table: {
      Type: "AWS::DynamoDB::Table",
      Properties: {
        KeySchema: [keyPart("pk", "HASH"), keyPart("sk", "RANGE")],
        AttributeDefinitions: ["pk", "sk"].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
        BillingMode: "PAY_PER_REQUEST",
        StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
      },
    },
    Files: { Type: "AWS::S3::Bucket", Properties: {} },
    Dead: queue(),
    Failed: queue(),
    Seen: queue(),
    Work: queue({
      // In seconds. If the function needed more time to start and to process the message, the queue would deliver the message again.
      VisibilityTimeout: 5,
      RedrivePolicy: { deadLetterTargetArn: getAtt("Dead", "Arn"), maxReceiveCount: 2 },
    }),
    Echo: lambda("echo"),
    Short: lambda("short", 1),
    Authorize: lambda("authorize"),
    // Streamed answers have a function of their own, because tests occupy its environments with readers that take no bytes.
    Stream: lambda("stream"),
    Publish: lambda("publish"),
    // This function has the name of the deliverer, because the outputs of the local service contain the queue that `events/deliver` reads.
    Consume: lambda("events/deliver"),
    Tick: lambda("tick"),
    Role: { Type: "AWS::IAM::Role", Properties: { AssumeRolePolicyDocument: {} } },
    ...api,
    ...plan,
    ...events,
  };
  return structuredClone({ Resources });
}

function writeFunctions(directory: string): void {
  for (const [file, text] of Object.entries(code)) {
    mkdirSync(path.join(directory, file), { recursive: true });
    writeFileSync(path.join(directory, file, "index.mjs"), text);
  }
}

export function startFixture(dataDir?: string, template: object = fixtureTemplate()): Promise<LocalService> {
  return startLocal({
    port: 0,
    dataDir,
    webhookUrlPolicy: "local",
    timeScale: 1,
    async synthesize(_config, directory) {
      writeFunctions(directory);
      return [template];
    },
  });
}

export async function putItem({ outputs }: LocalService, pk: string, more: object = {}): Promise<void> {
  const { TableName, DynamoDbEndpoint } = outputs;
  await documentsAt(DynamoDbEndpoint).send(new PutCommand({ TableName, Item: { pk, sk: "item", ...more } }));
}

export async function getItem({ outputs }: LocalService, pk: string): Promise<boolean> {
  const { TableName, DynamoDbEndpoint } = outputs;
  const command = new GetCommand({ TableName, Key: { pk, sk: "item" } });
  return (await documentsAt(DynamoDbEndpoint).send(command)).Item !== undefined;
}

export async function sendTo({ outputs }: LocalService, queueName: string, MessageBody: string): Promise<void> {
  const QueueUrl = queueUrl(outputs.SqsEndpoint, queueName);
  await sqsAt(outputs.SqsEndpoint).send(new SendMessageCommand({ QueueUrl, MessageBody }));
}

export async function takeFrom({ outputs }: LocalService, queueName: string, count: number): Promise<string[]> {
  const QueueUrl = queueUrl(outputs.SqsEndpoint, queueName);
  const request = { QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 5, VisibilityTimeout: 600 };
  const sqs = sqsAt(outputs.SqsEndpoint);
  const bodies: string[] = [];
  while (bodies.length < count) {
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand(request));
    bodies.push(...Messages.map(({ Body = "" }) => Body));
  }
  return bodies;
}
