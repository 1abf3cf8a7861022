/** Files of any size: read as a stream that survives a broken connection, and written in parts. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { bucketError, s3Client } from "#shared/aws/s3.ts";
import { setting } from "#shared/config.ts";
import { BucketUnavailable, FileGone } from "#shared/errors.ts";
import { errorFields, log } from "#shared/log.ts";

export interface FileInfo {
  readonly bytes: number;
  /** Tells one content of a file from another. */
  readonly etag: string;
}

/** The headers with which a browser gets the file. */
export interface FileHeaders {
  readonly contentType: string;
  readonly contentDisposition?: string;
  readonly contentEncoding?: string;
}

export interface Objects {
  put(key: string, bytes: Uint8Array, contentType: string): Promise<void>;
  /** The whole of a small file. Throws FileGone. */
  get(key: string): Promise<Uint8Array>;
  /** From its beginning, of this content and no other. Throws FileGone where it is not there or has another content. */
  read(key: string, etag: string): AsyncGenerator<Uint8Array, void, undefined>;
  /** Undefined where there is no such file. */
  info(key: string): Promise<FileInfo | undefined>;
  remove(key: string): Promise<void>;
  /** Begins a file that is written in parts; gives the id of this upload. Nobody sees it before it is complete. */
  beginParts(key: string, headers: FileHeaders): Promise<string>;
  /** Numbers begin at 1; all but the last have 5 MB at least. One that is written again takes the place of the first. Gives its tag. */
  putPart(key: string, upload: string, number: number, bytes: Uint8Array): Promise<string>;
  completeParts(key: string, upload: string, tags: readonly string[]): Promise<void>;
  /** Nothing is left of it. Safe to repeat. */
  abortParts(key: string, upload: string): Promise<void>;
}

/** A part of 8 MB over a slow line. */
const PART_TIMEOUT_MS = 30_000;
const READ_TRIES = 6;

/** Nothing is read or connected before the first file. */
export function openObjects(open: () => S3Client = () => s3Client({ answerMs: PART_TIMEOUT_MS })): Objects {
  let client: S3Client | undefined;
  /** Every error of S3 leaves as FileGone or BucketUnavailable. */
  async function call<T>(send: (s3: S3Client, Bucket: string) => Promise<T>): Promise<T> {
    client ??= open();
    try {
      return await send(client, setting("BUCKET_NAME"));
    } catch (error) {
      throw bucketError(error);
    }
  }

  const ranged = (key: string, etag: string, from: number) =>
    call((s3, Bucket) => {
      const Range = from === 0 ? {} : { Range: `bytes=${from}-` };
      return s3.send(new GetObjectCommand({ Bucket, Key: key, IfMatch: etag, ...Range }));
    });

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
      try {
        const head = await call((s3, Bucket) => s3.send(new HeadObjectCommand({ Bucket, Key })));
        return { bytes: head.ContentLength ?? 0, etag: head.ETag ?? "" };
      } catch (error) {
        if (error instanceof FileGone) return undefined;
        throw error;
      }
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
      try {
        await call((s3, Bucket) => s3.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })));
      } catch (error) {
        if (!(error instanceof FileGone)) throw error;
      }
    },
  };
}

function unreadable(what: string): never {
  throw new BucketUnavailable(`the bucket answered with ${what}`);
}

interface Answered {
  readonly ContentLength?: number | undefined;
  readonly ContentEncoding?: string | undefined;
  readonly Body?: { transformToWebStream(): ReadableStream<Uint8Array> } | undefined;
}

/** Resumes where a connection broke. Gives up after several attempts in a row that brought no byte. */
async function* readThrough(
  ranged: (key: string, etag: string, from: number) => Promise<Answered>,
  key: string,
  etag: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = 0;
  for (let fruitless = 0; fruitless < READ_TRIES; fruitless++) {
    const { ContentLength = 0, ContentEncoding, Body } = await ranged(key, etag, at);
    // A stored encoding makes lengths and ranges those of the compressed bytes.
    if (ContentEncoding !== undefined && ContentEncoding !== "") throw new FileGone("the file is stored compressed");
    const end = at + ContentLength;
    try {
      for await (const chunk of Body?.transformToWebStream() ?? []) {
        at += chunk.length;
        fruitless = 0;
        yield chunk;
      }
    } catch (error) {
      log.warn("bucket broke off", { at, end, ...errorFields(error) });
    }
    if (at === end) return;
  }
  throw new BucketUnavailable(`the bucket gave no more than ${at} bytes of ${key}`);
}
