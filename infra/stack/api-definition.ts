/** Defines the REST API as one OpenAPI document, because a resource for each path and method would exceed the 500 of a stack. */
import * as limits from "#shared/limits.ts";
import { AUTHORIZATION_PATTERN } from "#shared/sessions/session-id.ts";
import type { Route } from "../routes/route.ts";
import { gatewayResponses, type PathMethod, preflight } from "./gateway.ts";

export interface Invoked {
  readonly functionArn: string;
  readonly invokerArn: string;
}

export interface Endpoint extends Invoked {
  readonly route: Route;
  /** Seconds that API Gateway waits for the function. The default is 29. */
  readonly waitSeconds?: number;
}

interface DefinitionSpec {
  /** The title is also the name of the API in CloudWatch, because API Gateway takes it from the document. */
  readonly title: string;
  readonly endpoints: readonly Endpoint[];
  readonly authorizer: Invoked;
  /** The function that responds with 405 to methods that a path does not have. */
  readonly otherMethods: Invoked;
  readonly partition: string;
  readonly region: string;
  readonly allowedOrigins: readonly string[];
  /** True if API Gateway's own URL answers 403. */
  readonly isDefaultEndpointOff: boolean;
}

/** Minimum bytes of a response that API Gateway compresses. A shorter one could grow. Functions compress streamed responses themselves. */
const COMPRESSED_BYTES = 1_024;

export function apiDefinition(spec: DefinitionSpec): object {
  const paths = Map.groupBy(spec.endpoints, ({ route }) => route.path);
  return {
    openapi: "3.0.1",
    info: { title: spec.title, version: "1", description: "Canvassing service" },
    // API Gateway prefers `disableExecuteApiEndpoint` to the property of the CloudFormation resource. `/` is the default server.
    // https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-apigateway-restapi.html
    servers: [
      {
        url: "/",
        "x-amazon-apigateway-endpoint-configuration": { disableExecuteApiEndpoint: spec.isDefaultEndpointOff },
      },
    ],
    paths: {
      ...Object.fromEntries([...paths].map(([path, endpoints]) => [path, pathItem(path, endpoints, spec)])),
      ...unknownPaths([...paths.keys()], spec.allowedOrigins),
    },
    components: { securitySchemes: { [CALLER]: callerScheme(spec), [COMPANY]: companyKey } },
    // API Gateway takes the API key of a request from the authorizer, and ignores a key that the client sends.
    "x-amazon-apigateway-api-key-source": "AUTHORIZER",
    // API Gateway passes bodies of these types as base64, so that the function gets the sent bytes. If it passed them as text, it would
    // replace bytes that are not UTF-8. A response stays a text, because no function sets `isBase64Encoded`. Streamed responses need no
    // such type.
    // https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-payload-encodings.html
    "x-amazon-apigateway-binary-media-types": ["multipart/form-data", "application/json", "application/geo+json"],
    "x-amazon-apigateway-minimum-compression-size": COMPRESSED_BYTES,
    "x-amazon-apigateway-gateway-responses": gatewayResponses(spec.allowedOrigins),
  };
}

function pathItem(path: string, endpoints: readonly Endpoint[], spec: DefinitionSpec): object {
  const described = parametersOf(path);
  const methods = endpoints.flatMap(({ route, ...endpoint }) =>
    methodsOf(route).map((method) => ({ method, route, endpoint })),
  );
  return {
    ...Object.fromEntries(
      methods.map(({ method, route, endpoint }) => [
        method.toLowerCase(),
        {
          ...described,
          ...(!route.public && { security: [{ [CALLER]: [] }, { [COMPANY]: [] }] }),
          "x-amazon-apigateway-integration": lambdaProxy({ ...endpoint, ...route }, spec),
        },
      ]),
    ),
    ...(spec.allowedOrigins.length > 0 && {
      options: {
        ...described,
        ...preflight(
          methods.map(({ method }) => method),
          spec.allowedOrigins,
        ),
      },
    }),
    "x-amazon-apigateway-any-method": {
      ...described,
      "x-amazon-apigateway-integration": lambdaProxy(spec.otherMethods, spec),
    },
  };
}

/** The methods that API Gateway means by ANY. */
const VERBS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"] as const;

export function openMethods(table: readonly Route[], allowedOrigins: readonly string[]) {
  const paths = [...Map.groupBy(table, ({ path }) => path)];
  const preflights = Object.keys(
    unknownPaths(
      paths.map(([path]) => path),
      allowedOrigins,
    ),
  );
  return [
    ...paths.flatMap(([path, own]) => {
      const guarded = new Set<string>(own.filter((route) => !route.public).flatMap(methodsOf));
      return VERBS.filter((method) => !guarded.has(method)).map((method) => ({ path, method }));
    }),
    ...preflights.map((path) => ({ path, method: "OPTIONS" }) as const),
  ];
}

/** Returns the methods for which API Gateway invokes a route's function. The function of GET also responds to HEAD. */
export const methodsOf = ({ method }: Pick<Route, "method">): readonly PathMethod[] =>
  method === "GET" ? [method, "HEAD"] : [method];

function parametersOf(path: string): object {
  const parameters = [...path.matchAll(/\{(\w+)\+?\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  return parameters.length === 0 ? {} : { parameters };
}

const ALL_METHODS: readonly PathMethod[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/**
 * Returns CORS preflights for unknown paths. Without them, a browser would report a CORS error for a mistyped path and hide the 404.
 * `/{proxy+}` does not match `/` and parents of known paths, so these are added one by one.
 */
function unknownPaths(known: readonly string[], allowedOrigins: readonly string[]): Record<string, object> {
  if (allowedOrigins.length === 0) return {};
  const parents = known.flatMap((path) => {
    const parts = path.split("/");
    return parts.slice(1, -1).map((_, i) => parts.slice(0, i + 2).join("/"));
  });
  const item = (path: string) => ({ options: { ...parametersOf(path), ...preflight(ALL_METHODS, allowedOrigins) } });
  const unknown = ["/", ...parents, "/{proxy+}"].filter((path) => !known.includes(path));
  return Object.fromEntries(unknown.map((path) => [path, item(path)]));
}

const CALLER = "caller";
const COMPANY = "company";

/** The scheme that applies the usage plan of the authorizer's API key (company-throttle.ts). Its header must have the name `x-api-key`. */
const companyKey = { type: "apiKey", name: "x-api-key", in: "header" } as const;

/** Describes the authorizer. API Gateway caches the authorizer's policy for a token, for all methods. It does not cache an error. */
const callerScheme = ({ authorizer, partition, region }: DefinitionSpec): object => ({
  type: "apiKey",
  name: "Authorization",
  in: "header",
  "x-amazon-apigateway-authtype": "custom",
  "x-amazon-apigateway-authorizer": {
    type: "token",
    authorizerUri: lambdaUri({ partition, region }, `2015-03-31/functions/${authorizer.functionArn}/invocations`),
    authorizerCredentials: authorizer.invokerArn,
    identityValidationExpression: AUTHORIZATION_PATTERN,
    authorizerResultTtlInSeconds: limits.authorizationCacheSeconds,
  },
});

const lambdaUri = ({ partition, region }: Pick<DefinitionSpec, "partition" | "region">, action: string): string =>
  `arn:${partition}:apigateway:${region}:lambda:path/${action}`;

/** Returns the integration with a function. A streamed response has another URI, but needs the same right: `lambda:InvokeFunction`. */
function lambdaProxy(
  { functionArn, invokerArn, waitSeconds, streamed }: Omit<Endpoint, "route"> & Pick<Route, "streamed">,
  spec: DefinitionSpec,
): object {
  const action = streamed
    ? `2021-11-15/functions/${functionArn}/response-streaming-invocations`
    : `2015-03-31/functions/${functionArn}/invocations`;
  return {
    type: "aws_proxy",
    httpMethod: "POST",
    uri: lambdaUri(spec, action),
    credentials: invokerArn,
    ...(waitSeconds !== undefined && { timeoutInMillis: 1_000 * waitSeconds }),
    ...(streamed && { responseTransferMode: "STREAM" }),
  };
}
