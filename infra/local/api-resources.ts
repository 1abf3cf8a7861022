/** What the local gateway understands of API Gateway's resources; anything else in them is refused. */
import * as z from "zod/mini";
import { NoMeaning } from "./resources.ts";

export const RestApi = z.strictObject({
  Name: NoMeaning,
  Description: NoMeaning,
  /** Read by `readDefinition`. */
  Body: z.unknown(),
  // What another definition left is not there: each start imports it anew.
  Mode: NoMeaning,
  Parameters: z.optional(z.strictObject({ endpointConfigurationTypes: z.string() })),
  EndpointConfiguration: NoMeaning,
  DisableExecuteApiEndpoint: NoMeaning,
  SecurityPolicy: NoMeaning,
  EndpointAccessMode: NoMeaning,
  Policy: NoMeaning,
  Tags: NoMeaning,
});

/** How a stage names a method that has settings of its own. */
export const methodSetting = (path: string, verb: string): string => `${verb} /${path.replaceAll("/", "~1")}`;

/** `*` and `/*` are for all methods without a setting of their own. */
const MethodSetting = z.strictObject({
  HttpMethod: z.string(),
  ResourcePath: z.string().check(z.startsWith("/")),
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
