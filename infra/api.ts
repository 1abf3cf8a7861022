/** The REST API: a function for each route, and one API definition that calls them. */
import {
  AccessLogFormat,
  ApiDefinition,
  CfnRestApi,
  EndpointType,
  LogGroupLogDestination,
  type MethodDeploymentOptions,
  MethodLoggingLevel,
  RestApiMode,
  SpecRestApi,
} from "aws-cdk-lib/aws-apigateway";
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Duration, Fn, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { limits } from "#shared/limits.ts";
import { alarm } from "./alarms.ts";
import { apiDefinition } from "./api-definition.ts";
import type { DeployConfig } from "./config.ts";
import { createFunction, functionLogs, type Platform } from "./function.ts";
import { allow } from "./rights.ts";
import type { Route } from "./routes/route.ts";
import { authorizer, methodNotAllowed, routes } from "./routes/routes.ts";
import { accept } from "./rules.ts";

export const STAGE = "live";

/** Below API Gateway's limit of 29 s, so that the function answers first. */
export const API_TIMEOUT_SECONDS = 25;

/** Time for the work before the first byte, then for the body. */
export const STREAM_TIMEOUT_SECONDS = API_TIMEOUT_SECONDS + limits.streamBodyMs / 1_000;

/** API Gateway waits longer than the function may run, by this much. */
const GATEWAY_GRACE_SECONDS = 4;

/** Shared by all tenants. A tenant of 200 reps, each with one request per second, uses a fifth of it. */
const THROTTLE = { throttlingRateLimit: 1_000, throttlingBurstLimit: 2_000 } as const;

const LOGGED = {
  loggingLevel: MethodLoggingLevel.ERROR,
  dataTraceEnabled: false,
  metricsEnabled: false,
} as const satisfies MethodDeploymentOptions;

export function createApi(
  scope: Construct,
  platform: Platform,
  { allowedOrigins, serverTiming }: Pick<DeployConfig, "allowedOrigins" | "serverTiming">,
  table: readonly Route[] = routes,
): SpecRestApi {
  const home = new Construct(scope, "Endpoints");
  const environment = {
    ...(allowedOrigins.length > 0 && { ALLOWED_ORIGINS: allowedOrigins.join(",") }),
    ...(serverTiming && { SERVER_TIMING: "on" }),
  };
  // One group for all: the names of its streams contain the function's name.
  const logGroup = functionLogs(home, table);
  const made = table.map((route) => ({
    route,
    run: createFunction(home, platform, { ...route, timeoutSeconds: timeoutOf(route), environment, logGroup }),
  }));
  const authorize = createFunction(home, platform, { ...authorizer, logGroup });
  const refuse = createFunction(home, platform, { ...methodNotAllowed, environment, logGroup });
  const { stackName: title, partition, region } = Stack.of(scope);
  const definition = apiDefinition({
    title,
    endpoints: made.map(({ route, run: { functionArn } }) => ({
      route,
      functionArn,
      ...(route.streamed && { waitSeconds: timeoutOf(route) + GATEWAY_GRACE_SECONDS }),
    })),
    authorizerArn: authorize.functionArn,
    otherMethodsArn: refuse.functionArn,
    invokerArn: createInvoker(home, [authorize, refuse, ...made.map(({ run }) => run)]).roleArn,
    partition,
    region,
    allowedOrigins,
  });
  const api = createRestApi(scope, title, definition, table);
  errorAlarm(api);
  return api;
}

function createRestApi(
  scope: Construct,
  restApiName: string,
  definition: object,
  table: readonly Route[],
): SpecRestApi {
  const accessLog = new LogGroup(scope, "AccessLog", {
    retention: RetentionDays.THREE_MONTHS,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const api = new SpecRestApi(scope, "Api", {
    restApiName,
    apiDefinition: ApiDefinition.fromInline(definition),
    // A deployment removes what the definition no longer contains.
    mode: RestApiMode.OVERWRITE,
    endpointTypes: [EndpointType.REGIONAL],
    cloudWatchRole: true,
    // The role belongs to the account and serves all its APIs: the account must not name a deleted role.
    cloudWatchRoleRemovalPolicy: RemovalPolicy.RETAIN,
    deployOptions: {
      stageName: STAGE,
      ...THROTTLE,
      ...LOGGED,
      methodOptions: ownThrottles(table),
      accessLogDestination: new LogGroupLogDestination(accessLog),
      accessLogFormat: AccessLogFormat.custom(JSON.stringify(accessLogFields)),
      tracingEnabled: false,
    },
  });
  const resource = api.node.defaultChild;
  // In mode overwrite API Gateway takes the endpoint's type from this parameter; the default is edge-optimized.
  if (resource instanceof CfnRestApi) resource.parameters = { endpointConfigurationTypes: EndpointType.REGIONAL };
  // The stack's output ApiUrl replaces the construct's own output of the address.
  api.node.tryRemoveChild("Endpoint");
  keepExecutionLog(api);
  accept(api, acceptedFindings);
  return api;
}

/** A method with its own settings inherits none of the stage's, so this repeats them. */
function ownThrottles(table: readonly Route[]): Record<string, MethodDeploymentOptions> {
  const limited = table.flatMap((route) => {
    if (route.rate === undefined) return [];
    const throttle = { throttlingRateLimit: route.rate.perSecond, throttlingBurstLimit: route.rate.burst };
    return [[`${route.path}/${route.method}`, { ...LOGGED, ...throttle }] as const];
  });
  return Object.fromEntries(limited);
}

const acceptedFindings = {
  "AwsSolutions-APIG2": "Each function validates path, query and body by its schema and names the invalid field.",
  "AwsSolutions-APIG3": "The deployment decides on a web ACL; the stage's throttle works without one.",
  "Serverless-APIGWXrayEnabled": "The request id leads from the answer through every log line.",
  "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]":
    "The role belongs to the account and serves all its APIs, and API Gateway requires this policy.",
} as const;

/** The resource path without ids or query. No header and no address of the caller. */
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
  // The only id in the authorizer's log lines.
  authorizationId: "$context.authorizer.requestId",
} as const;

/** Otherwise API Gateway makes this log group itself, without a retention. */
function keepExecutionLog(api: SpecRestApi): void {
  const log = new LogGroup(api, "ExecutionLog", {
    logGroupName: Fn.join("", ["API-Gateway-Execution-Logs_", api.restApiId, "/", STAGE]),
    retention: RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  api.deploymentStage.node.addDependency(log);
}

/** The role by which API Gateway calls exactly these functions: one resource instead of a permission for each function. */
function createInvoker(home: Construct, functions: readonly LambdaFunction[]): Role {
  const arns = functions.map(({ functionArn }) => functionArn);
  return new Role(home, "Invoker", {
    assumedBy: new ServicePrincipal("apigateway.amazonaws.com"),
    inlinePolicies: { invoke: new PolicyDocument({ statements: [allow(["lambda:InvokeFunction"], arns)] }) },
  });
}

const timeoutOf = ({ streamed }: Route): number => (streamed ? STREAM_TIMEOUT_SECONDS : API_TIMEOUT_SECONDS);

function errorAlarm(api: SpecRestApi): void {
  const metric = api.metricServerError({ period: Duration.minutes(1), statistic: "Sum" });
  const impact =
    "Requests of users fail with 5xx. The access log names the routes; the logs of the functions name the causes.";
  alarm(api, "ServerErrors", { metric, above: 5, periods: 2, impact });
}
