/** Where data rests: the one table and the bucket for files. Both outlive the stack, but not a first deployment that failed. */

import { AttributeType, BillingMode, ProjectionType, StreamViewType, Table } from "aws-cdk-lib/aws-dynamodb";
import {
  BlockPublicAccess,
  Bucket,
  BucketEncryption,
  CfnBucket,
  type CorsRule,
  HttpMethods,
  ObjectOwnership,
} from "aws-cdk-lib/aws-s3";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Duration, RemovalPolicy } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { limits } from "#shared/limits.ts";
import { accept } from "./finding.ts";
import { tellOfUploads } from "./jobs.ts";
import type { Folder } from "./routes/access.ts";

/** @param tableName of a table that an earlier deployment left; undefined lets CloudFormation make one and name it */
export function createTable(scope: Construct, tableName?: string): Table {
  const table = new Table(scope, "Table", {
    ...(tableName !== undefined && { tableName }),
    partitionKey: { name: "pk", type: AttributeType.STRING },
    sortKey: { name: "sk", type: AttributeType.STRING },
    billingMode: BillingMode.PAY_PER_REQUEST,
    stream: StreamViewType.NEW_AND_OLD_IMAGES,
    timeToLiveAttribute: "expiresAt",
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
  });
  table.addGlobalSecondaryIndex({
    indexName: DUE_INDEX.name,
    partitionKey: { name: DUE_INDEX.partitionKey, type: AttributeType.STRING },
    sortKey: { name: DUE_INDEX.sortKey, type: AttributeType.STRING },
    projectionType: ProjectionType.KEYS_ONLY,
  });
  return table;
}

/** An uploaded CSV is of use while its import can be asked about, as long as a delivery's history. */
const keptDays: Record<Folder, number> = { uploads: 30, imports: 30, exports: limits.exportKeptDays + 1 };

/** Pages of these origins may use the links that the API hands out, with the headers that go with them. */
const fromPages = (origins: readonly string[]): CorsRule => ({
  allowedOrigins: [...origins],
  allowedMethods: [HttpMethods.PUT, HttpMethods.GET, HttpMethods.HEAD],
  allowedHeaders: ["content-type", "if-none-match", "x-amz-checksum-sha256"],
  exposedHeaders: ["ETag", "Content-Disposition"],
  maxAge: 600,
});

/** `uploads` gets a message for each file in the folder of that name. A `bucketName` is as a table's name above. */
export function createBucket(
  scope: Construct,
  uploads: Queue,
  allowedOrigins: readonly string[],
  bucketName?: string,
): Bucket {
  const bucket = new Bucket(scope, "Files", {
    ...(bucketName !== undefined && { bucketName }),
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
    encryption: BucketEncryption.S3_MANAGED,
    enforceSSL: true,
    minimumTLSVersion: 1.2,
    ...(allowedOrigins.length > 0 && { cors: [fromPages(allowedOrigins)] }),
    removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    lifecycleRules: [
      { id: "abandoned-uploads", abortIncompleteMultipartUploadAfter: Duration.days(1) },
      ...Object.entries(keptDays).map(([folder, days]) => ({
        id: folder,
        prefix: `${folder}/`,
        expiration: Duration.days(days),
      })),
    ],
  });
  const resource = bucket.node.defaultChild;
  if (resource instanceof CfnBucket) resource.notificationConfiguration = tellOfUploads(uploads);
  accept(bucket, {
    "AwsSolutions-S1": "Only the service's functions reach the bucket, and their request logs name each access.",
  });
  return bucket;
}
