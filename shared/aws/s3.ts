/** Reads and writes the files in the bucket. A download continues after a broken connection. Large files are uploaded in parts. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";
import { setting } from "#shared/config.ts";
import { BucketUnavailable, FileGone } from "#shared/errors.ts";
import { errorFields, log } from "#shared/log.ts";

const ANSWER_MS = 6_000;
/** Long enough to send a part of 8 MB over a slow connection. */
const PART_TIMEOUT_MS = 30_000;
const READ_TRIES = 6;

export function s3Client(settings: ClientSettings = {}): S3Client {
  const isStandIn =
    (settings.endpoint ?? process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL) !== undefined;
  return new S3Client({
    ...clientConfig({ answerMs: ANSWER_MS, ...settings }),
    // By default, the bucket's name is a part of the host name. Such a host name would not resolve to the local substitute for S3.
    forcePathStyle: isStandIn,
    // By default, the SDK would add the checksum of an empty body to a presigned upload. TLS already detects corrupted bytes.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  });
}

const statusOf = (error: unknown): number | undefined =>
  error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;

/** The names of S3's errors if a file or multipart upload does not exist, or if another file has replaced it. */
const GONE = /^(NoSuchKey|NoSuchUpload|PreconditionFailed)$/;

/**
 * A 404 whose error name does not match `gone` is a fault of the deployment: a missing bucket, or an endpoint that is not S3. The functions
 * need the permission `s3:ListBucket`, because S3 would otherwise answer 403 for a missing file.
 */
function bucketError(error: unknown, gone: RegExp): FileGone | BucketUnavailable {
  const status = statusOf(error);
  const name = error instanceof Error ? error.name : "unknown";
  const isGone = status === 412 || (status === 404 && gone.test(name));
  const message = `the bucket answered ${status ?? "nothing"}: ${name}`;
  return isGone ? new FileGone(message, { cause: error }) : new BucketUnavailable(message, { cause: error });
}

export interface FileInfo {
  readonly bytes: number;
  readonly etag: string;
}

export interface FileHeaders {
  readonly contentType: string;
  readonly contentDisposition?: string;
  readonly contentEncoding?: string;
}

export interface Objects {
  put(key: string, bytes: Uint8Array, contentType: string): Promise<void>;
  /** Throws FileGone if the file does not exist. */
  get(key: string): Promise<Uint8Array>;
  /** Throws FileGone if the file does not exist, has a different ETag, or has a content encoding. */
  read(key: string, etag: string): AsyncGenerator<Uint8Array, void, undefined>;
  /** Undefined if the file does not exist. Throws BucketUnavailable if the bucket does not exist. */
  info(key: string): Promise<FileInfo | undefined>;
  remove(key: string): Promise<void>;
  /** Begins a multipart upload and returns its id. The file does not exist until the upload completes. */
  beginParts(key: string, headers: FileHeaders): Promise<string>;
  /** Returns the ETag of the part. Numbers begin at 1. Every part except the last one needs 5 MB. A repetition replaces the part. */
  putPart(key: string, upload: string, number: number, bytes: Uint8Array): Promise<string>;
  completeParts(key: string, upload: string, tags: readonly string[]): Promise<void>;
  /** Does nothing if the upload does not exist, so it may be repeated. */
  abortParts(key: string, upload: string): Promise<void>;
}

/** Returns access to the files. The environment variables are read at the first request. */
export function openObjects(open: () => S3Client = () => s3Client({ answerMs: PART_TIMEOUT_MS })): Objects {
  let client: S3Client | undefined;
  async function call<T>(send: (s3: S3Client, Bucket: string) => Promise<T>, gone = GONE): Promise<T> {
    client ??= open();
    try {
      return await send(client, setting("BUCKET_NAME"));
    } catch (error) {
      throw bucketError(error, gone);
    }
  }

  const ranged = (key: string, etag: string, from: number) =>
    call((s3, Bucket) => {
      const Range = from === 0 ? {} : { Range: `bytes=${from}-` };
      return s3.send(new GetObjectCommand({ Bucket, Key: key, IfMatch: etag, ...Range }));
    });

  async function opened(Key: string): Promise<Pick<GetObjectCommandOutput, "ContentLength" | "ETag">> {
    const { Body, ...headers } = await call((s3, Bucket) => s3.send(new GetObjectCommand({ Bucket, Key })));
    await Body?.transformToWebStream().cancel();
    return headers;
  }

  return {
    put: async (Key, Body, ContentType) => {
      await call((s3, Bucket) => s3.send(new PutObjectCommand({ Bucket, Key, Body, ContentType })));
    },
    get: (Key) =>
      call(async (s3, Bucket) => {
        const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key }));
        return (await Body?.transformToByteArray()) ?? new Uint8Array();
      }),
    read: (key, etag) => readThrough(ranged, key, etag),
    info: async (Key) => {
      const head = () => call((s3, Bucket) => s3.send(new HeadObjectCommand({ Bucket, Key })), /^NotFound$/);
      // A 404 to HEAD has no body. Only the answer to a GET says whether the file or the whole bucket is missing.
      const file = (await unlessGone(head)) ?? (await unlessGone(() => opened(Key)));
      return file && { bytes: file.ContentLength ?? unreadable("no length"), etag: file.ETag ?? unreadable("no tag") };
    },
    remove: async (Key) => {
      await call((s3, Bucket) => s3.send(new DeleteObjectCommand({ Bucket, Key })));
    },
    beginParts: async (Key, { contentType, contentDisposition, contentEncoding }) => {
      const headers = {
        ContentType: contentType,
        ...(contentDisposition !== undefined && { ContentDisposition: contentDisposition }),
        ...(contentEncoding !== undefined && { ContentEncoding: contentEncoding }),
      };
      const { UploadId } = await call((s3, Bucket) =>
        s3.send(new CreateMultipartUploadCommand({ Bucket, Key, ...headers })),
      );
      return UploadId ?? unreadable("an upload in parts without an id");
    },
    putPart: async (Key, UploadId, PartNumber, Body) => {
      const { ETag } = await call((s3, Bucket) =>
        s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body })),
      );
      return ETag ?? unreadable("a part without a tag");
    },
    completeParts: async (Key, UploadId, tags) => {
      const Parts = tags.map((ETag, i) => ({ ETag, PartNumber: i + 1 }));
      await call((s3, Bucket) =>
        s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } })),
      );
    },
    abortParts: async (Key, UploadId) => {
      await unlessGone(() => call((s3, Bucket) => s3.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))));
    },
  };
}

async function unlessGone<T>(send: () => Promise<T>): Promise<T | undefined> {
  try {
    return await send();
  } catch (error) {
    if (error instanceof FileGone) return undefined;
    throw error;
  }
}

function unreadable(what: string): never {
  throw new BucketUnavailable(`the bucket answered with ${what}`);
}

interface Answered {
  readonly ContentLength?: number | undefined;
  readonly ContentEncoding?: string | undefined;
  readonly Body?: { transformToWebStream(): ReadableStream<Uint8Array> } | undefined;
}

/** Continues at the next byte after a broken connection. Throws BucketUnavailable after READ_TRIES successive attempts without a byte. */
async function* readThrough(
  ranged: (key: string, etag: string, from: number) => Promise<Answered>,
  key: string,
  etag: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = 0;
  for (let fruitless = 0; fruitless < READ_TRIES; ) {
    const { ContentLength = 0, ContentEncoding, Body } = await ranged(key, etag, at);
    // No caller decompresses the bytes of a file with a content encoding.
    if (ContentEncoding !== undefined && ContentEncoding !== "") throw new FileGone("the file is stored compressed");
    const [from, end] = [at, at + ContentLength];
    try {
      for await (const chunk of Body?.transformToWebStream() ?? []) {
        at += chunk.length;
        yield chunk;
      }
    } catch (error) {
      log.warn("bucket broke off", { at, end, ...errorFields(error) });
    }
    if (at === end) return;
    fruitless = at > from ? 0 : fruitless + 1;
  }
  throw new BucketUnavailable(`the bucket gave no more than ${at} bytes of ${key}`);
}
