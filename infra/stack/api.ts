/** Creates the REST API with a function for each route. */
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
import { LogGroup } from "aws-cdk-lib/aws-logs";
import { Duration, Fn, NestedStack, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import * as limits from "#shared/limits.ts";
import { type Method, type Route, type Throttle, WITHOUT_TOKEN } from "../routes/route.ts";
import { authorizer, methodNotAllowed, routes } from "../routes/routes.ts";
import { type Capacity, streamThrottle } from "../settings/capacity.ts";
import type { DeployConfig } from "../settings/config.ts";
import { ExplainedAlarm } from "./alarms.ts";
import { apiDefinition, type Invoked, methodsOf, openMethods } from "./api-definition.ts";
import { keyPrefix, type LimitedMethod, throttleCompanies } from "./company-throttle.ts";
import { mapDomain } from "./domain.ts";
import { called, createFunction, type FunctionSpec, functionLogs, type Platform } from "./function.ts";
import type { PathMethod } from "./gateway.ts";
import { allow } from "./rights.ts";
import { accept } from "./rules.ts";

export const STAGE = "live";

/** Time-out of a function behind the API. It is below API Gateway's limit of 29 s, so that a slow function can still send an error. */
const API_TIMEOUT_SECONDS = 25;

const STREAM_TIMEOUT_SECONDS = API_TIMEOUT_SECONDS + limits.streamBodyMs / 1_000;

/** API Gateway waits this much longer than the time-out of a streaming function, so that a slow function ends by its own time-out. */
const GATEWAY_GRACE_SECONDS = 4;

const LOGGED = {
  loggingLevel: MethodLoggingLevel.ERROR,
  dataTraceEnabled: false,
  metricsEnabled: false,
} as const satisfies MethodDeploymentOptions;

export function createApi(
  scope: Construct,
  platform: Platform,
  { allowedOrigins, serverTiming, domain }: Pick<DeployConfig, "allowedOrigins" | "serverTiming" | "domain">,
  table: readonly Route[] = routes,
): SpecRestApi {
  const home = new Construct(scope, "Endpoints");
  const environment = {
    ...(allowedOrigins.length > 0 && { ALLOWED_ORIGINS: allowedOrigins.join(",") }),
    ...(serverTiming && { SERVER_TIMING: "on" }),
  };
  // All functions share a log group. They can be told apart, because the name of a log stream contains the name of its function.
  const logGroup = functionLogs(home, platform, table);
  // The roles are in a nested stack, because a stack can have only 500 resources.
  const roles = new NestedStack(home, "Roles", { description: "The rights of the functions behind the API" });
  const invokerOf = createInvokers(home);
  const invoked = (invoker: Invoker, spec: FunctionSpec): Invoked =>
    invoker(called(createFunction(home, platform, { ...spec, roles }), spec.file, platform).functionArn);
  const endpoints = table.map((route) => ({
    route,
    ...invoked(invokerOf(route.method), { ...route, timeoutSeconds: timeoutOf(route), environment, logGroup }),
    ...(route.streamed && { waitSeconds: timeoutOf(route) + GATEWAY_GRACE_SECONDS }),
  }));
  const { stackName: title, partition, region } = Stack.of(scope);
  const { capacity } = platform;
  // API Gateway's own URL changes if CloudFormation replaces the API, so with a domain name it is switched off, unless the setting
  // `defaultEndpoint` keeps it.
  const isDefaultEndpointOff = domain !== undefined && !domain.keepsDefaultEndpoint;
  const definition = apiDefinition({
    title,
    endpoints,
    authorizer: invoked(invokerOf("GET"), {
      ...authorizer,
      environment: { THROTTLE_KEY_PREFIX: keyPrefix(scope) },
      logGroup,
    }),
    otherMethods: invoked(invokerOf("POST"), { ...methodNotAllowed, environment, logGroup }),
    partition,
    region,
    allowedOrigins,
    isDefaultEndpointOff,
  });
  const throttles = ownThrottles(table, capacity.requests, allowedOrigins);
  const api = createRestApi(scope, platform, definition, throttles, isDefaultEndpointOff);
  throttleCompanies(home, api, capacity.company, companyThrottles(table, capacity));
  if (domain !== undefined) mapDomain(scope, api, domain);
  errorAlarm(api);
  return api;
}

/** The format of the access log. It has no personal data: no query, no header, no address, and only the pattern of the path. */
export const accessLogFormat = JSON.stringify({
  requestId: "$context.requestId",
  method: "$context.httpMethod",
  resource: "$context.resourcePath",
  status: "$context.status",
  latencyMs: "$context.responseLatency",
  functionMs: "$context.integrationLatency",
  bytes: "$context.responseLength",
  gatewayError: "$context.error.responseType",
  // The authorizer's log lines have this request id instead of `requestId`.
  authorizationId: "$context.authorizer.requestId",
  companyId: "$context.authorizer.companyId",
  userId: "$context.authorizer.userId",
});

function createRestApi(
  scope: Construct,
  { capacity, logDays }: Platform,
  definition: object,
  throttles: Record<string, MethodDeploymentOptions>,
  isDefaultEndpointOff: boolean,
): SpecRestApi {
  const accessLog = new LogGroup(scope, "AccessLog", {
    retention: logDays,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const api = new SpecRestApi(scope, "Api", {
    restApiName: Stack.of(scope).stackName,
    apiDefinition: ApiDefinition.fromInline(definition),
    // With OVERWRITE, a deployment removes everything that the definition no longer contains.
    mode: RestApiMode.OVERWRITE,
    endpointTypes: [EndpointType.REGIONAL],
    // The API needs no role of its own, because the data stack creates the role with which API Gateway writes logs.
    cloudWatchRole: false,
    ...(isDefaultEndpointOff && { disableExecuteApiEndpoint: true }),
    deployOptions: {
      stageName: STAGE,
      ...settingOf(capacity.requests),
      ...LOGGED,
      methodOptions: throttles,
      accessLogDestination: new LogGroupLogDestination(accessLog),
      accessLogFormat: AccessLogFormat.custom(accessLogFormat),
      tracingEnabled: false,
    },
  });
  const resource = api.node.defaultChild;
  // Without this parameter, OVERWRITE would make the endpoint edge-optimized.
  if (resource instanceof CfnRestApi) resource.parameters = { endpointConfigurationTypes: EndpointType.REGIONAL };
  // Remove the output that the CDK adds for the URL, because the stack already has the output ApiUrl.
  api.node.tryRemoveChild("Endpoint");
  keepExecutionLog(api, logDays);
  accept(api, acceptedFindings);
  return api;
}

const settingOf = ({ perSecond, burst }: Throttle) => ({
  throttlingRateLimit: perSecond,
  throttlingBurstLimit: burst,
});

/** The throttle of a single route is at most this share of the throttle of the whole API. */
const ROUTE_SHARE = 0.2;

/** Returns the throttle of a method. HEAD gets only a tenth of the rate, because API Gateway throttles it in addition to GET. */
function throttleOf({ perSecond, burst }: Throttle, method: PathMethod, requests: Throttle): Throttle {
  const share = method === "HEAD" ? 0.1 : 1;
  return {
    perSecond: Math.ceil(Math.min(perSecond, requests.perSecond * ROUTE_SHARE) * share),
    burst: Math.ceil(Math.min(burst, requests.burst * ROUTE_SHARE) * share),
  };
}

/** Returns the throttles of methods. They repeat `LOGGED`, because a method with its own settings does not inherit those of the stage. */
function ownThrottles(
  table: readonly Route[],
  requests: Throttle,
  allowedOrigins: readonly string[],
): Record<string, MethodDeploymentOptions> {
  const guarded = table.flatMap(({ rate, ...route }) =>
    rate === undefined
      ? []
      : methodsOf(route).map((method) => [`${route.path}/${method}`, throttleOf(rate, method, requests)] as const),
  );
  const open = openMethods(table, allowedOrigins).map(
    ({ path, method }) => [`${path}/${method}`, WITHOUT_TOKEN] as const,
  );
  return Object.fromEntries(
    [...guarded, ...open].map(([name, throttle]) => [name, { ...LOGGED, ...settingOf(throttle) }]),
  );
}

/** The share of a method's throttle that one company may use. It is larger if the setting `companyRate` gives companies a larger share. */
const COMPANY_SHARE_OF_METHOD = 0.25;

/** Returns one company's throttles for single methods. `streamThrottle` is not for HEAD, whose response has no body to read slowly. */
function companyThrottles(table: readonly Route[], capacity: Capacity): LimitedMethod[] {
  const share = Math.max(COMPANY_SHARE_OF_METHOD, capacity.company.perSecond / capacity.requests.perSecond);
  return table.flatMap((route) =>
    methodsOf(route).flatMap((method) => {
      const own = route.rate && throttleOf(route.rate, method, capacity.requests);
      const stream = route.streamed && method !== "HEAD" ? streamThrottle(capacity, route.file) : undefined;
      if (own === undefined && stream === undefined) return [];
      return {
        path: route.path,
        method,
        perSecond: least(own && Math.ceil(own.perSecond * share), stream?.perSecond),
        burst: least(own && Math.ceil(own.burst * share), stream?.burst),
      };
    }),
  );
}

const least = (...numbers: readonly (number | undefined)[]): number =>
  Math.min(...numbers.filter((number) => number !== undefined));

const acceptedFindings = {
  "AwsSolutions-APIG2": "Each function validates path, query and body by its schema and names the invalid field.",
  "AwsSolutions-APIG3":
    "The preset production has a web ACL (web-acl.ts). A small deployment would pay more for it than for everything else.",
  "Serverless-APIGWXrayEnabled": "The request id of an answer is in every log line of the request.",
} as const;

/** Maximum days for the execution log. It shows faults in the API's definition, which appear soon after a deployment. */
const EXECUTION_LOG_DAYS = 30;

/** Creates the execution log. Otherwise API Gateway would create it without a retention time. */
function keepExecutionLog(api: SpecRestApi, logDays: number): void {
  const log = new LogGroup(api, "ExecutionLog", {
    logGroupName: Fn.join("", ["API-Gateway-Execution-Logs_", api.restApiId, "/", STAGE]),
    retention: Math.min(logDays, EXECUTION_LOG_DAYS),
    removalPolicy: RemovalPolicy.DESTROY,
  });
  api.deploymentStage.node.addDependency(log);
}

const timeoutOf = ({ streamed }: Route): number => (streamed ? STREAM_TIMEOUT_SECONDS : API_TIMEOUT_SECONDS);

function errorAlarm(api: SpecRestApi): void {
  const metric = api.metricServerError({ period: Duration.minutes(1), statistic: "Sum" });
  const impact = "Requests of users fail with 5xx through a fault of the service.";
  new ExplainedAlarm(api, "ServerErrors", { metric, threshold: 5, periods: 2, title: "Server errors", impact });
}

type Invoker = (functionArn: string) => Invoked;

/**
 * Creates a role for GET, one for POST, and one for all other routes. Without roles, the stack would need a permission for each function. A
 * policy of 10 240 characters has room for about 85 ARNs, so one role is not enough. A route never gets another role, so API Gateway may
 * invoke its function at every moment of a deployment.
 */
function createInvokers(home: Construct): (method: Method) => Invoker {
  const reads = createInvoker(home, "GetInvoker");
  const posts = createInvoker(home, "PostInvoker");
  const others = createInvoker(home, "OtherInvoker");
  return (method) => (method === "GET" ? reads : method === "POST" ? posts : others);
}

function createInvoker(home: Construct, id: string): Invoker {
  const statement = allow(["lambda:InvokeFunction"], []);
  const role = new Role(home, id, {
    assumedBy: new ServicePrincipal("apigateway.amazonaws.com"),
    inlinePolicies: { invoke: new PolicyDocument({ statements: [statement] }) },
  });
  return (functionArn) => {
    statement.addResources(functionArn);
    return { functionArn, invokerArn: role.roleArn };
  };
}
