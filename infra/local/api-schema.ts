/** The shape of the REST API's definition as this gateway understands it; anything else in it is refused. */
import * as z from "zod/mini";
import { NoMeaning } from "./resources.ts";

const Texts = z.record(z.string(), z.string());

const MockResponse = z.strictObject({
  statusCode: z.string(),
  responseParameters: z._default(Texts, {}),
  responseTemplates: z._default(Texts, {}),
});

export const Mock = z.strictObject({
  type: z.literal("mock"),
  requestTemplates: z._default(Texts, {}),
  /** By the pattern that the status has to match, or `default`. */
  responses: z.record(z.string(), MockResponse),
  passthroughBehavior: z._default(z.enum(["when_no_match", "when_no_templates", "never"]), "when_no_match"),
});

const LambdaProxy = z.strictObject({
  type: z.literal("aws_proxy"),
  uri: z.string(),
  httpMethod: z.literal("POST"),
  timeoutInMillis: z._default(z.int().check(z.minimum(50), z.maximum(900_000)), 29_000),
  responseTransferMode: z._default(z.enum(["BUFFERED", "STREAM"]), "BUFFERED"),
  credentials: NoMeaning,
});

export const Integration = z.discriminatedUnion("type", [Mock, LambdaProxy]);

const PathParameter = z.strictObject({
  name: z.string(),
  in: z.literal("path"),
  required: z.literal(true),
  schema: z.strictObject({ type: z.literal("string") }),
});

/** Names of security schemes. Several would have to hold together, which API Gateway does not do. */
const Security = z.array(z.record(z.string(), z.tuple([]))).check(z.maxLength(1));

export const Operation = z.strictObject({
  parameters: z._default(z.array(PathParameter), []),
  responses: z._default(
    z.record(
      z.string().check(z.regex(/^[2-5]\d\d$/)),
      z.strictObject({ description: z.string(), headers: z._default(z.record(z.string(), z.unknown()), {}) }),
    ),
    {},
  ),
  security: z._default(Security, []),
  "x-amazon-apigateway-integration": Integration,
});

export const ANY = "x-amazon-apigateway-any-method";
export const verbs = ["get", "put", "post", "delete", "options", "head", "patch", ANY] as const;
export const PathItem = z.partialRecord(z.enum(verbs), Operation);

export const GatewayResponse = z.strictObject({
  statusCode: z.optional(z.string()),
  responseParameters: z._default(Texts, {}),
  responseTemplates: z._default(Texts, {}),
});

/** All that API Gateway has; it refuses any other. */
const responseTypes = [
  ...["ACCESS_DENIED", "API_CONFIGURATION_ERROR", "AUTHORIZER_CONFIGURATION_ERROR", "AUTHORIZER_FAILURE"],
  ...["BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS", "DEFAULT_4XX", "DEFAULT_5XX", "EXPIRED_TOKEN"],
  ...["INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT", "INVALID_API_KEY", "INVALID_SIGNATURE"],
  ...["MISSING_AUTHENTICATION_TOKEN", "QUOTA_EXCEEDED", "REQUEST_TOO_LARGE", "RESOURCE_NOT_FOUND", "THROTTLED"],
  ...["UNAUTHORIZED", "UNSUPPORTED_MEDIA_TYPE", "WAF_FILTERED"],
];
const ResponseType = z.string().check(z.refine((type) => responseTypes.includes(type), { error: "no response type" }));

/** Without both ends fixed it would depend on API Gateway whether a part of the header may match. */
const WholeHeader = z
  .string()
  .check(
    z.regex(/^\^.*\$$/, "must begin with ^ and end with $"),
    z.refine(isPattern, { error: "must be a regular expression" }),
  );

/** A TOKEN authorizer. Its header is the scheme's name. */
export const SecurityScheme = z.strictObject({
  type: z.literal("apiKey"),
  name: z.string(),
  in: z.literal("header"),
  "x-amazon-apigateway-authtype": z.literal("custom"),
  "x-amazon-apigateway-authorizer": z.strictObject({
    type: z.literal("token"),
    authorizerUri: z.string(),
    authorizerCredentials: NoMeaning,
    identityValidationExpression: z.optional(WholeHeader),
    authorizerResultTtlInSeconds: z._default(z.int().check(z.minimum(0), z.maximum(3_600)), 300),
  }),
});

function isPattern(text: string): boolean {
  try {
    return new RegExp(text).source !== "";
  } catch {
    return false;
  }
}

export const Definition = z.strictObject({
  openapi: z.literal("3.0.1"),
  info: z.strictObject({ title: z.string(), version: z.string(), description: z.optional(z.string()) }),
  paths: z.record(z.string(), PathItem),
  components: z._default(z.strictObject({ securitySchemes: z.record(z.string(), SecurityScheme) }), {
    securitySchemes: {},
  }),
  "x-amazon-apigateway-binary-media-types": z._default(z.array(z.string()), []),
  "x-amazon-apigateway-minimum-compression-size": z.optional(z.int().check(z.minimum(0), z.maximum(10_485_760))),
  "x-amazon-apigateway-gateway-responses": z._default(z.record(ResponseType, GatewayResponse), {}),
});
