/** The S3 client, and which of its errors mean that a file is not there. */
import { S3Client, S3ServiceException } from "@aws-sdk/client-s3";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";
import { BucketUnavailable, FileGone } from "#shared/errors.ts";

/** The largest file that a function holds in memory, over a slow line: the answer begins, and never pauses longer. */
const ANSWER_MS = 6_000;

export function s3Client(settings: ClientSettings = {}): S3Client {
  const isStandIn =
    (settings.endpoint ?? process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL) !== undefined;
  return new S3Client({
    ...clientConfig({ answerMs: ANSWER_MS, ...settings }),
    // Only AWS itself resolves a host name for each bucket.
    forcePathStyle: isStandIn,
    // TLS protects the bytes on their way. The default adds a checksum to every request, which a link could not carry.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  });
}

const statusOf = (error: unknown): number | undefined =>
  error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;

/**
 * S3's error as one of the two above. 404 and 412 mean that the file is gone: the functions hold `s3:ListBucket`, without which S3
 * answers 403 for a file that is not there. A missing bucket is a fault of the deployment.
 */
export function bucketError(error: unknown): FileGone | BucketUnavailable {
  const status = statusOf(error);
  const name = error instanceof Error ? error.name : "unknown";
  const isGone = (status === 404 && name !== "NoSuchBucket") || status === 412;
  const message = `the bucket answered ${status ?? "nothing"}: ${name}`;
  return isGone ? new FileGone(message, { cause: error }) : new BucketUnavailable(message, { cause: error });
}
