/** Files of any size: read as a stream that survives a broken connection, written in parts, and handed out as links. */
import { type Bucket, BucketUnavailable, FileGone, openBucket } from "#shared/bucket.ts";
import { iso } from "#shared/clock.ts";
import { errorFields, log } from "#shared/log.ts";

export interface FileInfo {
  readonly bytes: number;
  /** Tells one content of a file from another. */
  readonly etag: string;
}

export interface Link {
  readonly url: string;
  readonly expiresAt: string;
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
  /** Begins a file that is written in parts; gives the name of this upload. Nobody sees it before it is complete. */
  beginParts(key: string, headers: Readonly<Record<string, string>>): Promise<string>;
  /** Numbers begin at 1; all but the last have 5 MB at least. One that is written again takes the place of the first. Gives its tag. */
  putPart(key: string, upload: string, number: number, bytes: Uint8Array): Promise<string>;
  completeParts(key: string, upload: string, tags: readonly string[]): Promise<void>;
  /** Nothing is left of it. Safe to repeat. */
  abortParts(key: string, upload: string): Promise<void>;
}

/** What a function may hand out without touching a file. */
export interface Links {
  download(key: string, seconds: number, nowMs: number): Promise<Link>;
  /** A PUT with exactly these headers. */
  upload(key: string, headers: Readonly<Record<string, string>>, seconds: number, nowMs: number): Promise<Link>;
}

const lazily = (): (() => Bucket) => {
  let bucket: Bucket | undefined;
  return () => {
    bucket ??= openBucket();
    return bucket;
  };
};

export function openLinks(): Links {
  const bucket = lazily();
  const link = async (of: Parameters<Bucket["link"]>[0], nowMs: number): Promise<Link> => ({
    url: await bucket().link(of),
    expiresAt: iso(nowMs + of.expiresInSeconds * 1_000),
  });
  return {
    download: (key, expiresInSeconds, nowMs) => link({ method: "GET", key, expiresInSeconds }, nowMs),
    upload: (key, headers, expiresInSeconds, nowMs) => link({ method: "PUT", key, headers, expiresInSeconds }, nowMs),
  };
}

/** A part of 8 MB over a slow line. */
const PART_TIMEOUT_MS = 30_000;
const READ_TRIES = 6;

export function openObjects(): Objects {
  const bucket = lazily();
  const text = async (answer: Promise<Response>): Promise<string> => (await answer).text();
  return {
    put: async (key, body, contentType) => {
      const headers = { "content-type": contentType };
      await text(bucket().send({ method: "PUT", key, body, headers, timeoutMs: PART_TIMEOUT_MS }));
    },
    get: async (key) => new Uint8Array(await (await bucket().send({ method: "GET", key })).arrayBuffer()),
    read: (key, etag) => readThrough(bucket(), key, etag),
    info: (key) => infoOf(bucket(), key),
    remove: async (key) => {
      await text(bucket().send({ method: "DELETE", key }));
    },
    beginParts: async (key, headers) => {
      const answer = await text(bucket().send({ method: "POST", key, query: { uploads: "" }, headers }));
      return /<UploadId>([^<]+)<\/UploadId>/.exec(answer)?.[1] ?? unreadable("an upload in parts without a name");
    },
    putPart: async (key, uploadId, number, body) => {
      const query = { partNumber: String(number), uploadId };
      const answer = await bucket().send({ method: "PUT", key, query, body, timeoutMs: PART_TIMEOUT_MS });
      await answer.arrayBuffer();
      return answer.headers.get("etag") ?? unreadable("a part without a tag");
    },
    completeParts: async (key, uploadId, tags) => {
      const body = Buffer.from(partList(tags));
      const answer = await text(bucket().send({ method: "POST", key, query: { uploadId }, body }));
      // S3 begins its answer before it knows how it ends.
      if (!answer.includes("CompleteMultipartUploadResult")) unreadable("parts that could not be put together");
    },
    abortParts: async (key, uploadId) => {
      const aborted = text(bucket().send({ method: "DELETE", key, query: { uploadId } }));
      await aborted.catch((error: unknown) => {
        if (!(error instanceof FileGone)) throw error;
      });
    },
  };
}

function unreadable(what: string): never {
  throw new BucketUnavailable(`the bucket answered with ${what}`);
}

const partList = (tags: readonly string[]): string =>
  `<CompleteMultipartUpload>${tags
    .map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag.replaceAll('"', "&quot;")}</ETag></Part>`)
    .join("")}</CompleteMultipartUpload>`;

async function infoOf(bucket: Bucket, key: string): Promise<FileInfo | undefined> {
  try {
    const { headers } = await bucket.send({ method: "HEAD", key });
    return { bytes: Number(headers.get("content-length")), etag: headers.get("etag") ?? "" };
  } catch (error) {
    if (error instanceof FileGone) return undefined;
    throw error;
  }
}

/** Goes on where a connection broke. Gives up when try after try brings not a byte. */
async function* readThrough(bucket: Bucket, key: string, etag: string): AsyncGenerator<Uint8Array, void, undefined> {
  let at = 0;
  for (let fruitless = 0; fruitless < READ_TRIES; fruitless++) {
    const headers = { "if-match": etag, ...(at > 0 && { range: `bytes=${at}-` }) };
    const answer = await bucket.send({ method: "GET", key, headers });
    const length = Number(answer.headers.get("content-length"));
    // What is unpacked on the way has no length, and no end that could be told beforehand.
    if (answer.headers.has("content-encoding")) throw new FileGone("the file is stored compressed");
    const end = at + length;
    try {
      for await (const chunk of answer.body ?? []) {
        at += chunk.length;
        fruitless = 0;
        yield chunk;
      }
    } catch (error) {
      // Broken off: the rest is asked for.
      log.warn("bucket broke off", { at, end, ...errorFields(error) });
    }
    if (at === end) return;
  }
  throw new BucketUnavailable(`the bucket gave no more than ${at} bytes of ${key}`);
}
