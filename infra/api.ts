/** The REST API: one resource and method per route, and a problem body for everything that API Gateway answers itself. */
import {
  AccessLogFormat,
  EndpointType,
  Integration,
  type IntegrationOptions,
  IntegrationType,
  LogGroupLogDestination,
  MethodLoggingLevel,
  type Resource,
  ResponseTransferMode,
  RestApi,
} from "aws-cdk-lib/aws-apigateway";
import type { Metric } from "aws-cdk-lib/aws-cloudwatch";
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Duration, Fn, RemovalPolicy } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import { limits } from "#shared/limits.ts";
import type { DeployConfig } from "./config.ts";
import { accept } from "./finding.ts";
import { allow, createFunction, type Platform } from "./function.ts";
import { gatewayAnswers, mockMethods } from "./gateway.ts";
import { alarm } from "./monitoring.ts";
import { type Method, type Route, routes } from "./routes.ts";

export const STAGE = "live";

/** Below API Gateway's 29 s, so that the function answers before the gateway gives up. */
export const API_TIMEOUT_SECONDS = 25;

/** The work before the first byte, then the body. */
export const STREAM_TIMEOUT_SECONDS = API_TIMEOUT_SECONDS + limits.streamBodyMs / 1_000;

/** API Gateway waits this much longer than the function may run. */
const GATEWAY_GRACE_SECONDS = 4;

/** Shared by all tenants; a tenant of 200 reps at one request per second each stays far below. */
const THROTTLE = { throttlingRateLimit: 1_000, throttlingBurstLimit: 2_000 } as const;

export function createApi(
  scope: Construct,
  platform: Platform,
  { allowedOrigins, serverTiming }: Pick<DeployConfig, "allowedOrigins" | "serverTiming">,
): RestApi {
  const api = createRestApi(scope);
  gatewayAnswers(api, allowedOrigins);
  const environment = {
    ...(allowedOrigins.length > 0 && { ALLOWED_ORIGINS: allowedOrigins.join(",") }),
    ...(serverTiming && { SERVER_TIMING: "on" }),
  };
  const made = routes.map((route) => ({
    route,
    run: createFunction(api, platform, { ...route, timeoutSeconds: timeoutOf(route), environment }),
  }));
  const invoker = createInvoker(
    api,
    made.map(({ run }) => run),
  );
  for (const { route, run } of made) addRoute(api, route, run, invoker);
  for (const [path, methods] of methodsByPath(routes)) {
    mockMethods(api.root.resourceForPath(path), methods, allowedOrigins);
  }
  errorAlarm(api);
  return api;
}

function createRestApi(scope: Construct): RestApi {
  const accessLog = new LogGroup(scope, "AccessLog", {
    retention: RetentionDays.THREE_MONTHS,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const api = new RestApi(scope, "Api", {
    description: "Canvassing service",
    endpointTypes: [EndpointType.REGIONAL],
    // A file of any encoding reaches the function byte for byte, as base64.
    binaryMediaTypes: ["multipart/form-data"],
    cloudWatchRole: true,
    cloudWatchRoleRemovalPolicy: RemovalPolicy.RETAIN,
    deployOptions: {
      stageName: STAGE,
      ...THROTTLE,
      accessLogDestination: new LogGroupLogDestination(accessLog),
      accessLogFormat: AccessLogFormat.custom(JSON.stringify(accessLogFields)),
      loggingLevel: MethodLoggingLevel.ERROR,
      dataTraceEnabled: false,
      metricsEnabled: false,
      tracingEnabled: false,
    },
  });
  // The construct's own output of the address; the stack's is ApiUrl.
  api.node.tryRemoveChild("Endpoint");
  keepExecutionLog(api);
  accept(api, acceptedFindings);
  return api;
}

const inFunction = "Every function but the public ones verifies the access token itself and looks its subject up.";
const acceptedFindings = {
  "AwsSolutions-APIG2": "Each function parses path, query and body by its schema and names the field at fault.",
  "AwsSolutions-APIG3": "A web ACL is a matter of the deployment; the stage's throttling stands without it.",
  "AwsSolutions-APIG4": inFunction,
  "AwsSolutions-COG4": inFunction,
  "Serverless-APIGWXrayEnabled": "The request id leads from the answer through every log line.",
  "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]":
    "The role is the account's, for all its APIs, and this is the policy that API Gateway asks for.",
} as const;

/** Resource path, never the path itself with its query; no header, no address of the caller. */
const accessLogFields = {
  requestId: "$context.requestId",
  time: "$context.requestTimeEpoch",
  method: "$context.httpMethod",
  resource: "$context.resourcePath",
  status: "$context.status",
  latencyMs: "$context.responseLatency",
  functionMs: "$context.integrationLatency",
  bytes: "$context.responseLength",
  gatewayError: "$context.error.responseType",
} as const;

/** API Gateway would make this log group itself, without a retention. */
function keepExecutionLog(api: RestApi): void {
  const log = new LogGroup(api, "ExecutionLog", {
    logGroupName: Fn.join("", ["API-Gateway-Execution-Logs_", api.restApiId, "/", STAGE]),
    retention: RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  api.deploymentStage.node.addDependency(log);
}

/** API Gateway takes this one role to call exactly these functions: one resource instead of a permission per function. */
function createInvoker(api: RestApi, functions: readonly LambdaFunction[]): Role {
  const arns = functions.map(({ functionArn }) => functionArn);
  return new Role(api, "Invoker", {
    assumedBy: new ServicePrincipal("apigateway.amazonaws.com"),
    inlinePolicies: { invoke: new PolicyDocument({ statements: [allow(["lambda:InvokeFunction"], arns)] }) },
  });
}

function addRoute(api: RestApi, route: Route, run: LambdaFunction, invoker: Role): void {
  const resource = api.root.resourceForPath(route.path);
  resource.addMethod(route.method, lambdaProxy(resource, run, invoker, route));
}

const timeoutOf = ({ streamed }: Route): number => (streamed ? STREAM_TIMEOUT_SECONDS : API_TIMEOUT_SECONDS);

/** Streaming is another action of Lambda's interface, under the same right `lambda:InvokeFunction`. */
function lambdaProxy({ stack }: Resource, run: LambdaFunction, credentialsRole: Role, route: Route): Integration {
  const action = route.streamed
    ? `2021-11-15/functions/${run.functionArn}/response-streaming-invocations`
    : `2015-03-31/functions/${run.functionArn}/invocations`;
  const streaming: IntegrationOptions = {
    responseTransferMode: ResponseTransferMode.STREAM,
    timeout: Duration.seconds(timeoutOf(route) + GATEWAY_GRACE_SECONDS),
  };
  return new Integration({
    type: IntegrationType.AWS_PROXY,
    integrationHttpMethod: "POST",
    uri: `arn:${stack.partition}:apigateway:${stack.region}:lambda:path/${action}`,
    options: { credentialsRole, ...(route.streamed && streaming) },
  });
}

function methodsByPath(table: readonly Route[]): Map<string, Method[]> {
  const byPath = new Map<string, Method[]>();
  for (const { path, method } of table) byPath.set(path, [...(byPath.get(path) ?? []), method]);
  return byPath;
}

function errorAlarm(api: RestApi): void {
  const metric: Metric = api.metricServerError({ period: Duration.minutes(1), statistic: "Sum" });
  const impact = "Requests of users fail with 5xx. The access log names the routes, the function logs the causes.";
  alarm(api, "ServerErrors", { metric, above: 5, periods: 2, impact });
}
