/** Reads the OpenAPI definition of the API. A start fails if it contains anything that the local gateway does not support. */
import * as z from "zod/mini";
import { faults, LocalError } from "../servers/error.ts";
import { Ignored } from "./resources.ts";

const Texts = z.record(z.string(), z.string());

/** The only mock integration of the templates. It answers a CORS preflight with headers and without a body. */
const Preflight = z.strictObject({
  type: z.literal("mock"),
  passthroughBehavior: z.literal("never"),
  contentHandling: z.literal("CONVERT_TO_TEXT"),
  requestTemplates: z.strictObject({ "application/json": z.literal('{"statusCode":204}') }),
  responses: z.strictObject({
    default: z.strictObject({
      statusCode: z.literal("204"),
      responseParameters: Texts,
      responseTemplates: z.strictObject({ "application/json": z.literal("") }),
    }),
  }),
});

const LambdaProxy = z.strictObject({
  type: z.literal("aws_proxy"),
  uri: z.string(),
  httpMethod: z.literal("POST"),
  timeoutInMillis: z._default(z.int().check(z.minimum(50), z.maximum(900_000)), 29_000),
  responseTransferMode: z._default(z.enum(["BUFFERED", "STREAM"]), "BUFFERED"),
  credentials: Ignored,
});

const INTEGRATION = "x-amazon-apigateway-integration";
const Integration = z.discriminatedUnion("type", [Preflight, LambdaProxy]);

const PathParameter = z.strictObject({
  name: z.string(),
  in: z.literal("path"),
  required: z.literal(true),
  schema: z.strictObject({ type: z.literal("string") }),
});

/** API Gateway allows one authorizer for each method. A method may also need an API key, so it has at most two security requirements. */
const Security = z.array(z.record(z.string(), z.tuple([]))).check(z.maxLength(2));

const Operation = z.strictObject({
  parameters: z._default(z.array(PathParameter), []),
  responses: Ignored,
  security: z._default(Security, []),
  [INTEGRATION]: Integration,
});

/** The methods that API Gateway means by ANY. A setting of the stage names one of them, because it cannot name ANY. */
export const ANY: readonly string[] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

const ANY_METHOD = "x-amazon-apigateway-any-method";
const verbs = ["get", "put", "post", "delete", "options", "head", "patch", ANY_METHOD] as const;
const PathItem = z.partialRecord(z.enum(verbs), Operation);

export const PROBLEM = "application/problem+json";
const GatewayResponse = z.strictObject({
  statusCode: z.string(),
  responseParameters: z._default(Texts, {}),
  responseTemplates: z.strictObject({ [PROBLEM]: z.string() }),
});

/**
 * A regular expression for the header that contains the token. It must begin with ^ and end with $, because AWS does not document whether
 * API Gateway compares the expression with the whole header or with a part of it. With ^ and $, both comparisons have the same result.
 */
const WholeHeader = z.string().check(z.regex(/^\^.*\$$/, "must begin with ^ and end with $"));

/** In API Gateway's definitions, a security scheme with this header name is an API key. Each other scheme is an authorizer. */
const KEY_HEADER = "x-api-key";
const AUTHORIZER = "x-amazon-apigateway-authorizer";

/** Either an authorizer, whose `name` is the header with the token, or the scheme of methods that need an API key. */
const SecurityScheme = z
  .strictObject({
    type: z.literal("apiKey"),
    name: z.string(),
    in: z.literal("header"),
    "x-amazon-apigateway-authtype": z.optional(z.literal("custom")),
    [AUTHORIZER]: z.optional(
      z.strictObject({
        type: z.literal("token"),
        authorizerUri: z.string(),
        authorizerCredentials: Ignored,
        identityValidationExpression: z.optional(WholeHeader),
        authorizerResultTtlInSeconds: z._default(z.int().check(z.minimum(0), z.maximum(3_600)), 300),
      }),
    ),
  })
  .check(
    z.refine(
      (scheme) =>
        (scheme.name === KEY_HEADER) !== (scheme[AUTHORIZER] !== undefined) &&
        (scheme.name === KEY_HEADER) !== (scheme["x-amazon-apigateway-authtype"] !== undefined),
      { error: `must be an authorizer, or an API key in the header ${KEY_HEADER}` },
    ),
  );

const Definition = z.strictObject({
  openapi: z.literal("3.0.1"),
  info: z.strictObject({ title: z.string(), version: z.string(), description: z.optional(z.string()) }),
  servers: z._default(
    z.array(
      z.strictObject({
        url: z.literal("/"),
        // API Gateway's own URL is the only one of the local service, so it cannot be off.
        "x-amazon-apigateway-endpoint-configuration": z.strictObject({ disableExecuteApiEndpoint: z.literal(false) }),
      }),
    ),
    [],
  ),
  paths: z.record(z.string(), PathItem),
  components: z._default(z.strictObject({ securitySchemes: z.record(z.string(), SecurityScheme) }), {
    securitySchemes: {},
  }),
  // With `AUTHORIZER`, the authorizer returns the API key of a request. The local service does not support the other source, a header that
  // the client sends.
  "x-amazon-apigateway-api-key-source": z.optional(z.literal("AUTHORIZER")),
  "x-amazon-apigateway-binary-media-types": z._default(z.array(z.string()), []),
  "x-amazon-apigateway-minimum-compression-size": z.int().check(z.minimum(0), z.maximum(10_485_760)),
  "x-amazon-apigateway-gateway-responses": z._default(z.record(z.string(), GatewayResponse), {}),
});

/** Returns the name of a method in the settings of the stage, such as `GET /~1api~1prospects`, or `GET /` for the path `/`. */
export const methodSetting = (path: string, verb: string): string =>
  `${verb} /${path === "/" ? "" : path.replaceAll("/", "~1")}`;

export const planMethod = (path: string, verb: string): string => `${path}/${verb}`;

export type PreflightIntegration = z.infer<typeof Preflight>;
export type Api = ReturnType<typeof readDefinition>;
export type ApiMethod = Api["methods"][number];
export type ApiAuthorizer = Api["authorizer"];

/** @param id the logical id of the API, for the error messages */
export function readDefinition(id: string, body: unknown) {
  const parsed = z.safeParse(Definition, body);
  if (!parsed.success) throw new LocalError(faults(`${id}.Body`, parsed.error));
  const { paths, components, ...rest } = parsed.data;
  const schemes = components.securitySchemes;
  const [authorizer, ...others] = Object.values(schemes).flatMap(authorizerIn);
  if (authorizer === undefined || others.length > 0) throw new LocalError(`${id}.Body: must have one authorizer`);
  const methods = Object.entries(paths).flatMap(([path, item]) =>
    verbs.flatMap((key) => {
      const operation = item[key];
      return operation === undefined ? [] : [readMethod(path, key, operation, schemes)];
    }),
  );
  return {
    methods,
    authorizer,
    gatewayResponses: rest["x-amazon-apigateway-gateway-responses"],
    binaryMediaTypes: rest["x-amazon-apigateway-binary-media-types"],
    minimumCompressionSize: rest["x-amazon-apigateway-minimum-compression-size"],
  };
}

type Schemes = Readonly<Record<string, z.infer<typeof SecurityScheme>>>;

function authorizerIn({ name, [AUTHORIZER]: authorizer }: Schemes[string]) {
  if (authorizer === undefined) return [];
  const { authorizerUri: uri, identityValidationExpression: validation } = authorizer;
  return [{ header: name.toLowerCase(), uri, validation, ttlSeconds: authorizer.authorizerResultTtlInSeconds }];
}

function readMethod(path: string, key: (typeof verbs)[number], operation: z.infer<typeof Operation>, schemes: Schemes) {
  const verb = key === ANY_METHOD ? "ANY" : key.toUpperCase();
  const name = `${verb} ${path}`;
  const needed = operation.security.flatMap((requirement) => Object.keys(requirement));
  const unknown = needed.find((scheme) => schemes[scheme] === undefined);
  if (unknown !== undefined) throw new LocalError(`${name}: no security scheme is named ${unknown}`);
  return {
    name,
    path,
    verb,
    integration: operation[INTEGRATION],
    isGuarded: needed.some((scheme) => schemes[scheme]?.[AUTHORIZER] !== undefined),
    /** True if a request needs an API key that is in a usage plan. The authorizer returns the key. */
    needsKey: needed.some((scheme) => schemes[scheme]?.name === KEY_HEADER),
  };
}
