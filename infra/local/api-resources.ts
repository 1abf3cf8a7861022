/** What the local gateway understands of API Gateway's resources; anything else in them is refused. */
import * as z from "zod/mini";
import { NoMeaning } from "./resources.ts";

const Templates = z.record(z.string(), z.string());

export const RestApi = z.strictObject({
  Name: NoMeaning,
  Description: NoMeaning,
  BinaryMediaTypes: z._default(z.array(z.string()), []),
  EndpointConfiguration: NoMeaning,
  DisableExecuteApiEndpoint: NoMeaning,
  SecurityPolicy: NoMeaning,
  EndpointAccessMode: NoMeaning,
  Policy: NoMeaning,
  Tags: NoMeaning,
});

export const ApiResource = z.strictObject({ ParentId: z.string(), PathPart: z.string(), RestApiId: z.string() });

const IntegrationResponse = z.strictObject({
  StatusCode: z.string(),
  SelectionPattern: z.optional(z.string()),
  ResponseParameters: z._default(Templates, {}),
  ResponseTemplates: z._default(Templates, {}),
});

const passthrough = z._default(z.enum(["WHEN_NO_MATCH", "WHEN_NO_TEMPLATES", "NEVER"]), "WHEN_NO_MATCH");

const Mock = z.strictObject({
  Type: z.literal("MOCK"),
  RequestTemplates: z._default(Templates, {}),
  IntegrationResponses: z.array(IntegrationResponse),
  PassthroughBehavior: passthrough,
});

const LambdaProxy = z.strictObject({
  Type: z.literal("AWS_PROXY"),
  Uri: z.string(),
  IntegrationHttpMethod: z.literal("POST"),
  TimeoutInMillis: z._default(z.int(), 29_000),
  ResponseTransferMode: z._default(z.enum(["BUFFERED", "STREAM"]), "BUFFERED"),
  Credentials: NoMeaning,
});

export const Method = z.strictObject({
  HttpMethod: z.string(),
  ResourceId: z.string(),
  RestApiId: z.string(),
  AuthorizationType: z.literal("NONE"),
  ApiKeyRequired: z.optional(z.literal(false)),
  Integration: z.discriminatedUnion("Type", [Mock, LambdaProxy]),
  // Declares which headers a response may have: the integration responses are what sets them.
  MethodResponses: NoMeaning,
  OperationName: NoMeaning,
});

export const GatewayResponse = z.strictObject({
  RestApiId: z.string(),
  ResponseType: z.string(),
  StatusCode: z.optional(z.string()),
  ResponseParameters: z._default(Templates, {}),
  ResponseTemplates: z._default(Templates, {}),
});

const MethodSetting = z.strictObject({
  HttpMethod: z.literal("*"),
  ResourcePath: z.literal("/*"),
  ThrottlingRateLimit: z.optional(z.number()),
  ThrottlingBurstLimit: z.optional(z.number()),
  CacheDataEncrypted: NoMeaning,
  DataTraceEnabled: NoMeaning,
  LoggingLevel: NoMeaning,
  MetricsEnabled: NoMeaning,
});

export const Stage = z.strictObject({
  RestApiId: z.string(),
  StageName: z.string(),
  MethodSettings: z._default(z.array(MethodSetting), []),
  // The deployment is the whole template, and who called what is in the functions' own logs.
  DeploymentId: NoMeaning,
  AccessLogSetting: NoMeaning,
  Description: NoMeaning,
  TracingEnabled: NoMeaning,
  Tags: NoMeaning,
});

export type Stage = z.infer<typeof Stage>;
export type Method = z.infer<typeof Method>;
export type Mock = z.infer<typeof Mock>;
export type ProxyIntegration = z.infer<typeof LambdaProxy>;
export type GatewayResponse = z.infer<typeof GatewayResponse>;
