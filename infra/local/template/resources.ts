/**
 * The schemas of CloudFormation templates and of the resource types that the local service runs. They refuse unknown properties, which the
 * service would otherwise ignore without a warning.
 */
import * as z from "zod/mini";
import { logLevels } from "./log-levels.ts";

const Fields = z.record(z.string(), z.unknown());

/** A property that the local service ignores. It concerns the operation, safety or cost of a deployment. */
export const Ignored = z.optional(z.unknown());

const Resource = z.strictObject({
  Type: z.string(),
  Properties: z._default(Fields, {}),
  Metadata: z._default(Fields, {}),
  // The following properties have no effect in the local service. It creates resources in its own order, and does not update or delete them
  // when the template changes.
  DependsOn: Ignored,
  DeletionPolicy: Ignored,
  UpdateReplacePolicy: Ignored,
  UpdatePolicy: Ignored,
});

const Output = z.looseObject({ Value: z.unknown(), Export: z.optional(z.strictObject({ Name: z.unknown() })) });

export const Template = z.strictObject({
  Resources: z.record(z.string(), Resource),
  Outputs: z._default(z.record(z.string(), Output), {}),
  // The following properties have no effect in the local service. They check the parameters of a deployment, or describe the template.
  Parameters: Ignored,
  Rules: Ignored,
  Description: Ignored,
});
export type Template = z.infer<typeof Template>;
export type TemplateResource = Template["Resources"][string];

const Seconds = z.int().check(z.minimum(0));
const Attributes = z.array(z.strictObject({ AttributeName: z.string(), AttributeType: z.enum(["S", "N", "B"]) }));
const KeySchema = z.array(z.strictObject({ AttributeName: z.string(), KeyType: z.enum(["HASH", "RANGE"]) }));

const SecondaryIndex = z.strictObject({
  IndexName: z.string(),
  KeySchema,
  Projection: z.strictObject({ ProjectionType: z.literal("KEYS_ONLY") }),
});

/** The rule by which the bucket sends a queue message for each new object. */
const QueueConfiguration = z.strictObject({
  Event: z.literal("s3:ObjectCreated:*"),
  Queue: z.string(),
  Filter: z.strictObject({
    S3Key: z.strictObject({ Rules: z.tuple([z.strictObject({ Name: z.literal("prefix"), Value: z.string() })]) }),
  }),
});

const NO_PATTERN = "patterns are not supported by the local runtime";
const CorsRule = z.strictObject({
  /** Each entry is an origin, or `*` for all origins. */
  AllowedOrigins: z.array(z.string().check(z.regex(/^(?:\*|[^*]+)$/, NO_PATTERN))),
  AllowedMethods: z.array(z.enum(["GET", "PUT", "HEAD", "POST", "DELETE"])),
  AllowedHeaders: z._default(z.array(z.string().check(z.regex(/^[^*]+$/, NO_PATTERN))), []),
  ExposedHeaders: z._default(z.array(z.string()), []),
  MaxAge: z.optional(z.int()),
});

const Limits = z.strictObject({ RateLimit: z.number(), BurstLimit: z.int() });

const OnFailure = z.strictObject({ OnFailure: z.strictObject({ Destination: z.string() }) });

/** The settings of one method. `HttpMethod` `*` with `ResourcePath` `/*` means all methods that have no settings of their own. */
const MethodSetting = z.strictObject({
  HttpMethod: z.string(),
  ResourcePath: z.string().check(z.startsWith("/")),
  ThrottlingRateLimit: z.number(),
  ThrottlingBurstLimit: z.number(),
  CacheDataEncrypted: Ignored,
  DataTraceEnabled: Ignored,
  LoggingLevel: Ignored,
  MetricsEnabled: Ignored,
});

const VARIABLE_VALUE = /^[A-Za-z0-9\-._~:/?#&=,]+$/;

/** The resource types that the local service runs, with the schemas of their properties. */
export const schemas = {
  "AWS::DynamoDB::Table": z.strictObject({
    KeySchema,
    AttributeDefinitions: Attributes,
    GlobalSecondaryIndexes: z.optional(z.array(SecondaryIndex)),
    TimeToLiveSpecification: z.optional(z.strictObject({ AttributeName: z.string(), Enabled: z.boolean() })),
    BillingMode: z.literal("PAY_PER_REQUEST"),
    StreamSpecification: z.optional(z.strictObject({ StreamViewType: z.literal("NEW_AND_OLD_IMAGES") })),
    DeletionProtectionEnabled: Ignored,
    PointInTimeRecoverySpecification: Ignored,
  }),
  "AWS::SQS::Queue": z.strictObject({
    VisibilityTimeout: z.optional(Seconds),
    MessageRetentionPeriod: z.optional(Seconds),
    RedrivePolicy: z.optional(z.strictObject({ deadLetterTargetArn: z.string(), maxReceiveCount: z.int() })),
    SqsManagedSseEnabled: Ignored,
  }),
  "AWS::S3::Bucket": z.strictObject({
    CorsConfiguration: z.optional(z.strictObject({ CorsRules: z.array(CorsRule) })),
    NotificationConfiguration: z.optional(z.strictObject({ QueueConfigurations: z.array(QueueConfiguration) })),
    // The following properties have no effect in the local service: its objects never expire and are not encrypted.
    BucketEncryption: Ignored,
    LifecycleConfiguration: Ignored,
    OwnershipControls: Ignored,
    PublicAccessBlockConfiguration: Ignored,
  }),
  /** The local KMS server enforces the IAM policies of the functions that use the key (policies.ts), but not the policy of the key. */
  "AWS::KMS::Key": z.strictObject({ Description: Ignored, EnableKeyRotation: Ignored, KeyPolicy: Ignored }),
  "AWS::Lambda::Function": z.strictObject({
    Handler: z.literal("index.handler"),
    Runtime: z.literal("nodejs24.x"),
    Environment: z.optional(z.strictObject({ Variables: z.optional(z.record(z.string(), z.string())) })),
    MemorySize: z._default(z.int(), 128),
    Timeout: z._default(z.int(), 3),
    LoggingConfig: z.strictObject({
      // The metric filters match only JSON lines, so CloudFormation's default format (text) is refused.
      LogFormat: z.literal("JSON"),
      ApplicationLogLevel: z._default(z.enum(logLevels), "INFO"),
      SystemLogLevel: Ignored,
      LogGroup: z.optional(z.string()),
    }),
    // `Code` is ignored, because the local service finds the code by the directory in the resource's metadata.
    Code: Ignored,
    Architectures: Ignored,
    Description: Ignored,
    // With `Terminate`, Lambda stops a function that sends messages to the queue by which it is invoked. The local service never stops such
    // a function, so it accepts only `Allow`.
    RecursiveLoop: z.optional(z.literal("Allow")),
    Role: Ignored,
  }),
  "AWS::Lambda::Version": z.strictObject({ FunctionName: z.string() }),
  /** The local service has only one version of each function, so the schema accepts no division of invocations between two versions. */
  "AWS::Lambda::Alias": z.strictObject({
    FunctionName: z.string(),
    FunctionVersion: z.string(),
    Name: z.string().check(z.regex(/^(?!\d+$)[\w-]{1,128}$/)),
  }),
  "AWS::Lambda::EventSourceMapping": z.strictObject({
    EventSourceArn: z.string(),
    FunctionName: z.string(),
    BatchSize: z.int(),
    /** The maximum wait for more records. The local event source of a stream never waits, which this setting allows. */
    MaximumBatchingWindowInSeconds: z._default(Seconds, 0),
    FunctionResponseTypes: z.tuple([z.literal("ReportBatchItemFailures")]),
    FilterCriteria: z.optional(z.strictObject({ Filters: z.array(z.strictObject({ Pattern: z.string() })) })),
    StartingPosition: z.optional(z.literal("TRIM_HORIZON")),
    BisectBatchOnFunctionError: z._default(z.boolean(), false),
    MaximumRetryAttempts: z._default(z.int(), -1),
    MaximumRecordAgeInSeconds: z._default(z.int(), -1),
    // Only 1 is accepted, because the local service processes only one batch of a shard at a time.
    ParallelizationFactor: z.optional(z.literal(1)),
    DestinationConfig: z.optional(OnFailure),
    ScalingConfig: z.optional(z.strictObject({ MaximumConcurrency: z.int() })),
  }),
  "AWS::Events::Rule": z.strictObject({
    ScheduleExpression: z.string(),
    Targets: z.array(z.strictObject({ Arn: z.string(), Id: z.string(), Input: z.optional(z.string()) })),
    Description: Ignored,
  }),
  "AWS::ApiGateway::RestApi": z.strictObject({
    Name: Ignored,
    Body: z.unknown(),
    // `Mode` says whether a deployment merges the definition into an existing API or replaces it. A local start has no existing API.
    Mode: Ignored,
    Parameters: z.optional(z.strictObject({ endpointConfigurationTypes: z.string() })),
    EndpointConfiguration: Ignored,
  }),
  "AWS::ApiGateway::Stage": z.strictObject({
    RestApiId: z.string(),
    StageName: z.string(),
    MethodSettings: z._default(z.array(MethodSetting), []),
    /** The stage variables. API Gateway accepts only the characters of `VARIABLE_VALUE` in their values. */
    Variables: z._default(z.record(z.string().check(z.regex(/^\w+$/)), z.string().check(z.regex(VARIABLE_VALUE))), {}),
    // The following settings have no effect in the local service, which has no deployments, access logs or traces.
    DeploymentId: Ignored,
    AccessLogSetting: Ignored,
    TracingEnabled: Ignored,
  }),
  /**
   * A usage plan defines the throttle of its API keys. The schema accepts no quota. A quota needs the number of requests in a period, and
   * the local service would lose this number at a restart.
   */
  "AWS::ApiGateway::UsagePlan": z.strictObject({
    ApiStages: z.tuple([
      z.strictObject({ ApiId: z.string(), Stage: z.string(), Throttle: z._default(z.record(z.string(), Limits), {}) }),
    ]),
    Throttle: Limits,
    Description: Ignored,
  }),
  "AWS::ApiGateway::UsagePlanKey": z.strictObject({
    KeyId: z.string(),
    KeyType: z.literal("API_KEY"),
    UsagePlanId: z.string(),
  }),
  /** API Gateway accepts only 20 to 128 letters and digits as the value of an API key. */
  "AWS::ApiGateway::ApiKey": z.strictObject({
    Enabled: z.literal(true),
    Value: z.string().check(z.regex(/^[A-Za-z0-9]{20,128}$/, "must be 20 to 128 letters and digits")),
  }),
} as const;

/** Resource types that the local service does not run. An `AWS::IAM::Role` has an effect all the same: policies.ts reads its policies. */
export const ignoredTypes: ReadonlySet<string> = new Set([
  "AWS::ApiGateway::Account",
  "AWS::ApiGateway::Deployment",
  "AWS::CloudWatch::Alarm",
  "AWS::CloudWatch::Dashboard",
  "AWS::IAM::Role",
  "AWS::Lambda::Permission",
  "AWS::Logs::LogGroup",
  "AWS::Logs::MetricFilter",
  "AWS::Logs::QueryDefinition",
  "AWS::S3::BucketPolicy",
  "AWS::SNS::Topic",
  "AWS::SNS::TopicPolicy",
  "AWS::SQS::QueuePolicy",
]);
