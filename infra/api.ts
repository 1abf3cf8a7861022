/** The REST API: a function for each route, and one definition with a problem body for everything that API Gateway answers itself. */
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
import type { Metric } from "aws-cdk-lib/aws-cloudwatch";
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Duration, Fn, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { limits } from "#shared/limits.ts";
import { apiDefinition } from "./api-definition.ts";
import type { DeployConfig } from "./config.ts";
import { accept } from "./finding.ts";
import { allow, createFunction, functionLogs, type Platform } from "./function.ts";
import { alarm } from "./monitoring.ts";
import { rateOf } from "./rates.ts";
import type { Route } from "./routes/route.ts";
import { authorizer, methodNotAllowed, routes } from "./routes/routes.ts";

export const STAGE = "live";

/** Below API Gateway's 29 s, so that the function answers before the gateway gives up. */
export const API_TIMEOUT_SECONDS = 25;

/** The work before the first byte, then the body. */
export const STREAM_TIMEOUT_SECONDS = API_TIMEOUT_SECONDS + limits.streamBodyMs / 1_000;

/** API Gateway waits this much longer than the function may run. */
const GATEWAY_GRACE_SECONDS = 4;

/** Shared by all tenants; a tenant of 200 reps at one request per second each stays far below. */
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
  // One group for all: its streams bear the functions' names.
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
    // What the definition no longer has is removed.
    mode: RestApiMode.OVERWRITE,
    endpointTypes: [EndpointType.REGIONAL],
    cloudWatchRole: true,
    // The account's, for all its APIs: it must not name a role that is gone.
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
  // A definition that overwrites takes the endpoint's type from this parameter, and would else make it edge-optimized.
  if (resource instanceof CfnRestApi) resource.parameters = { endpointConfigurationTypes: EndpointType.REGIONAL };
  // The construct's own output of the address; the stack's is ApiUrl.
  api.node.tryRemoveChild("Endpoint");
  keepExecutionLog(api);
  accept(api, acceptedFindings);
  return api;
}

/** A method with settings of its own takes none of the stage's, so that they are all here again. */
function ownThrottles(table: readonly Route[]): Record<string, MethodDeploymentOptions> {
  const limited = table.flatMap((route) => {
    const rate = rateOf(route);
    if (rate === undefined) return [];
    const throttle = { throttlingRateLimit: rate.perSecond, throttlingBurstLimit: rate.burst };
    return [[`${route.path}/${route.method}`, { ...LOGGED, ...throttle }] as const];
  });
  return Object.fromEntries(limited);
}

const acceptedFindings = {
  "AwsSolutions-APIG2": "Each function parses path, query and body by its schema and names the field at fault.",
  "AwsSolutions-APIG3": "A web ACL is a matter of the deployment; the stage's throttling stands without it.",
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
  // Leads from the request to the authorizer's own log lines, which know no other id.
  authorizationId: "$context.authorizer.requestId",
} as const;

/** API Gateway would make this log group itself, without a retention. */
function keepExecutionLog(api: SpecRestApi): void {
  const log = new LogGroup(api, "ExecutionLog", {
    logGroupName: Fn.join("", ["API-Gateway-Execution-Logs_", api.restApiId, "/", STAGE]),
    retention: RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  api.deploymentStage.node.addDependency(log);
}

/** API Gateway takes this one role to call exactly these functions: one resource instead of a permission per function. */
function createInvoker(home: Construct, functions: readonly LambdaFunction[]): Role {
  const arns = functions.map(({ functionArn }) => functionArn);
  return new Role(home, "Invoker", {
    assumedBy: new ServicePrincipal("apigateway.amazonaws.com"),
    inlinePolicies: { invoke: new PolicyDocument({ statements: [allow(["lambda:InvokeFunction"], arns)] }) },
  });
}

const timeoutOf = ({ streamed }: Route): number => (streamed ? STREAM_TIMEOUT_SECONDS : API_TIMEOUT_SECONDS);

function errorAlarm(api: SpecRestApi): void {
  const metric: Metric = api.metricServerError({ period: Duration.minutes(1), statistic: "Sum" });
  const impact = "Requests of users fail with 5xx. The access log names the routes, the function logs the causes.";
  alarm(api, "ServerErrors", { metric, above: 5, periods: 2, impact });
}
