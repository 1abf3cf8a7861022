/**
 * What the local runtime understands of each resource type, as schemas that allow nothing else: a property is honoured,
 * or has no meaning on one machine, or the template is refused.
 */
import * as z from "zod/mini";
import { logLevels, systemLogLevels } from "./console.ts";

/** For settings of operation, safety or cost that change nothing about what the service does on one machine. */
export const NoMeaning = z.optional(z.unknown());

const Seconds = z.int().check(z.minimum(0));
const Attributes = z.array(z.strictObject({ AttributeName: z.string(), AttributeType: z.enum(["S", "N", "B"]) }));
const KeySchema = z.array(z.strictObject({ AttributeName: z.string(), KeyType: z.enum(["HASH", "RANGE"]) }));

const SecondaryIndex = z.strictObject({
  IndexName: z.string(),
  KeySchema,
  Projection: z.strictObject({ ProjectionType: z.string(), NonKeyAttributes: z.optional(z.array(z.string())) }),
  ContributorInsightsSpecification: NoMeaning,
  OnDemandThroughput: NoMeaning,
  WriteOnDemandThroughputSettings: NoMeaning,
});

const table = {
  TableName: z.optional(z.string()),
  KeySchema,
  AttributeDefinitions: Attributes,
  GlobalSecondaryIndexes: z.optional(z.array(SecondaryIndex)),
  TimeToLiveSpecification: z.optional(z.strictObject({ AttributeName: z.string(), Enabled: z.boolean() })),
  BillingMode: z.literal("PAY_PER_REQUEST"),
  SSESpecification: NoMeaning,
};

export const Table = z.strictObject({
  ...table,
  StreamSpecification: z.optional(z.strictObject({ StreamViewType: z.string() })),
  DeletionProtectionEnabled: NoMeaning,
  PointInTimeRecoverySpecification: NoMeaning,
  ContributorInsightsSpecification: NoMeaning,
  OnDemandThroughput: NoMeaning,
  TableClass: NoMeaning,
  Tags: NoMeaning,
});

/** A global table with one replica is a table. Its replica holds settings of operation only. */
export const GlobalTable = z.strictObject({
  ...table,
  StreamSpecification: z.optional(z.strictObject({ StreamViewType: z.string() })),
  Replicas: z.array(z.unknown()).check(z.length(1)),
  WriteOnDemandThroughputSettings: NoMeaning,
});

export const Queue = z.strictObject({
  QueueName: z.optional(z.string()),
  VisibilityTimeout: z.optional(Seconds),
  DelaySeconds: z.optional(Seconds),
  MaximumMessageSize: z.optional(z.int()),
  MessageRetentionPeriod: z.optional(Seconds),
  ReceiveMessageWaitTimeSeconds: z.optional(Seconds),
  RedrivePolicy: z.optional(z.strictObject({ deadLetterTargetArn: z.string(), maxReceiveCount: z.int() })),
  // Who may use the queue as its dead-letter queue, encryption and tags.
  RedriveAllowPolicy: NoMeaning,
  SqsManagedSseEnabled: NoMeaning,
  KmsMasterKeyId: NoMeaning,
  KmsDataKeyReusePeriodSeconds: NoMeaning,
  Tags: NoMeaning,
});

/** Who may use and rotate it is for AWS; here each function needs what its own policy grants (kms-rights.ts). */
export const EncryptionKey = z.strictObject({
  Description: NoMeaning,
  EnableKeyRotation: NoMeaning,
  KeyPolicy: NoMeaning,
  PendingWindowInDays: NoMeaning,
  RotationPeriodInDays: NoMeaning,
  Tags: NoMeaning,
});

/** Which queue is told of which new objects. */
const QueueConfiguration = z.strictObject({
  Event: z.literal("s3:ObjectCreated:*"),
  Queue: z.string(),
  Filter: z.strictObject({
    S3Key: z.strictObject({
      Rules: z.array(z.strictObject({ Name: z.enum(["prefix", "suffix"]), Value: z.string() })),
    }),
  }),
});

/** A name, or all of them: a pattern with a star inside is not understood here. */
const NameOrAll = z.string().check(z.regex(/^(?:\*|[^*]+)$/, "patterns are not supported by the local runtime"));
const CorsRule = z.strictObject({
  AllowedOrigins: z.array(NameOrAll),
  AllowedMethods: z.array(z.enum(["GET", "PUT", "HEAD", "POST", "DELETE"])),
  AllowedHeaders: z._default(z.array(NameOrAll), []),
  ExposedHeaders: z._default(z.array(z.string()), []),
  MaxAge: z.optional(z.int()),
});

export const Bucket = z.strictObject({
  BucketName: z.optional(z.string()),
  CorsConfiguration: z.optional(z.strictObject({ CorsRules: z.array(CorsRule) })),
  NotificationConfiguration: z.optional(z.strictObject({ QueueConfigurations: z.array(QueueConfiguration) })),
  // Objects live in memory until the service ends: no lifecycle, versions or encryption at rest.
  BucketEncryption: NoMeaning,
  LifecycleConfiguration: NoMeaning,
  OwnershipControls: NoMeaning,
  PublicAccessBlockConfiguration: NoMeaning,
  VersioningConfiguration: NoMeaning,
  LoggingConfiguration: NoMeaning,
  Tags: NoMeaning,
});

export const LambdaFunction = z.strictObject({
  FunctionName: z.optional(z.string()),
  Handler: z.literal("index.handler"),
  Runtime: z.literal("nodejs24.x"),
  Environment: z.optional(z.strictObject({ Variables: z.optional(z.record(z.string(), z.string())) })),
  MemorySize: z._default(z.int(), 128),
  Timeout: z._default(z.int(), 3),
  ReservedConcurrentExecutions: z.optional(z.int()),
  DeadLetterConfig: z.optional(z.strictObject({ TargetArn: z.string() })),
  LoggingConfig: z.strictObject({
    // Lambda's default is text, whose lines no metric filter for JSON matches.
    LogFormat: z.literal("JSON"),
    ApplicationLogLevel: z._default(z.enum(logLevels), "INFO"),
    SystemLogLevel: z._default(z.enum(systemLogLevels), "INFO"),
    LogGroup: z.optional(z.string()),
  }),
  // The code is the asset that the metadata names.
  Code: NoMeaning,
  Architectures: NoMeaning,
  Description: NoMeaning,
  EphemeralStorage: NoMeaning,
  // No chain of invocations is ended here.
  RecursiveLoop: z.optional(z.literal("Allow")),
  Role: NoMeaning,
  Tags: NoMeaning,
  TracingConfig: NoMeaning,
});

const OnFailure = z.strictObject({ OnFailure: z.strictObject({ Destination: z.string() }) });

export const EventSourceMapping = z.strictObject({
  EventSourceArn: z.string(),
  FunctionName: z.string(),
  Enabled: z._default(z.boolean(), true),
  BatchSize: z.optional(z.int()),
  MaximumBatchingWindowInSeconds: z._default(Seconds, 0),
  FunctionResponseTypes: z._default(z.array(z.literal("ReportBatchItemFailures")), []),
  FilterCriteria: z.optional(z.strictObject({ Filters: z.array(z.strictObject({ Pattern: z.string() })) })),
  StartingPosition: z.optional(z.literal("TRIM_HORIZON")),
  BisectBatchOnFunctionError: z._default(z.boolean(), false),
  MaximumRetryAttempts: z._default(z.int(), -1),
  MaximumRecordAgeInSeconds: z._default(z.int(), -1),
  // Records of one partition key stay in order at any factor; here one batch at a time keeps the whole shard in order.
  ParallelizationFactor: z.optional(z.literal(1)),
  DestinationConfig: z.optional(OnFailure),
  ScalingConfig: z.optional(z.strictObject({ MaximumConcurrency: z.int() })),
  MetricsConfig: NoMeaning,
  Tags: NoMeaning,
});

export const EventInvokeConfig = z.strictObject({
  FunctionName: z.string(),
  Qualifier: z.literal("$LATEST"),
  MaximumRetryAttempts: z.optional(z.int()),
  MaximumEventAgeInSeconds: z.optional(z.int()),
  DestinationConfig: z.optional(OnFailure),
});

export const Rule = z.strictObject({
  ScheduleExpression: z.string(),
  State: z._default(z.enum(["ENABLED", "DISABLED"]), "ENABLED"),
  Targets: z.array(
    z.strictObject({
      Arn: z.string(),
      Id: z.string(),
      Input: z.optional(z.string()),
      // Delivery to a function on the same machine does not fail.
      RetryPolicy: NoMeaning,
      DeadLetterConfig: NoMeaning,
    }),
  ),
  Name: NoMeaning,
  Description: NoMeaning,
  Tags: NoMeaning,
});

/** Resources that only guard, watch or pay for others. */
export const typesWithoutMeaning: ReadonlySet<string> = new Set([
  "AWS::ApiGateway::Account",
  "AWS::ApiGateway::Deployment",
  "AWS::CDK::Metadata",
  "AWS::CloudWatch::Alarm",
  "AWS::CloudWatch::CompositeAlarm",
  "AWS::CloudWatch::Dashboard",
  "AWS::IAM::ManagedPolicy",
  "AWS::IAM::Policy",
  "AWS::IAM::Role",
  "AWS::Lambda::Permission",
  "AWS::Logs::LogGroup",
  "AWS::Logs::MetricFilter",
  "AWS::S3::BucketPolicy",
  "AWS::SNS::Subscription",
  "AWS::SNS::Topic",
  "AWS::SNS::TopicPolicy",
  "AWS::SQS::QueuePolicy",
]);
