/** Tests which error of the service each error of S3 becomes, for each call, and that a download continues after a broken connection. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { S3Client } from "@aws-sdk/client-s3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Objects, openObjects, s3Client } from "#shared/aws/s3.ts";
import { readFile } from "#shared/aws/s3-folders.ts";
import { isTransient } from "#shared/errors.ts";
import { closeAfterEach, http } from "../harness/listening.ts";
import { thrownBy } from "../harness/shapes.ts";

closeAfterEach();
beforeEach(() => {
  vi.stubEnv("BUCKET_NAME", "files");
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** Answers a request to the simulated bucket. `number` counts the requests from 1. */
type Answer = (response: ServerResponse, number: number, request: IncomingMessage) => void;

async function bucketThat(answer: Answer): Promise<{ bucket: Objects; s3: S3Client; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const { endpoint } = await http((response, request) => {
    request.resume();
    request.once("end", () => {
      requests.push(request);
      answer(response, requests.length, request);
    });
  });
  const credentials = { accessKeyId: "AKID", secretAccessKey: "SECRET" };
  const client = () => s3Client({ endpoint, region: "eu-west-1", credentials, attempts: 1 });
  return { bucket: openObjects(client), s3: client(), requests };
}

/** Answers with a status and a code of S3, for example "404 NoSuchKey". */
const fault = (answer: string): Answer => {
  const [status, code] = answer.split(" ");
  return (response) =>
    response
      .writeHead(Number(status), { "Content-Type": "application/xml" })
      .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>m</Message></Error>`);
};
const always404: Answer = (response) => response.writeHead(404).end();

async function readAll(bucket: Objects): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bucket.read("a", '"tag"')) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Every kind of call that the service makes to the bucket. */
const calls: Readonly<Record<string, (bucket: Objects) => Promise<unknown>>> = {
  put: (bucket) => bucket.put("a", Buffer.from("x"), "text/plain"),
  get: (bucket) => bucket.get("a"),
  read: readAll,
  info: (bucket) => bucket.info("a"),
  remove: (bucket) => bucket.remove("a"),
  beginParts: (bucket) => bucket.beginParts("a", { contentType: "text/csv" }),
  putPart: (bucket) => bucket.putPart("a", "upload", 1, Buffer.from("x")),
  completeParts: (bucket) => bucket.completeParts("a", "upload", ['"tag"']),
  abortParts: (bucket) => bucket.abortParts("a", "upload"),
};

/** Executes each of `calls` on the bucket. Returns the names of the errors, and `undefined` for a call that throws no error. */
async function endsOf(bucket: Objects): Promise<Record<string, string | undefined>> {
  const ends = Object.entries(calls).map(async ([name, call]) => {
    const error = await thrownBy(call(bucket));
    if (error !== undefined) expect(isTransient(error)).toBe(error instanceof Error && error.name !== "FileGone");
    return [name, error instanceof Error ? error.name : undefined] as const;
  });
  return Object.fromEntries(await Promise.all(ends));
}

const all = (name: string) => Object.fromEntries(Object.keys(calls).map((call) => [call, name]));

describe("a fault of the deployment or of the service is the answer", () => {
  test.each([
    ...["301 PermanentRedirect", "400 ExpiredToken", "400 AuthorizationHeaderMalformed", "400 KMS.DisabledException"],
    ...["403 AccessDenied", "403 InvalidAccessKeyId", "403 RequestTimeTooSkewed", "403 SignatureDoesNotMatch"],
    ...["403 AllAccessDisabled", "404 NoSuchBucket", "409 OperationAborted", "416 InvalidRange"],
    ...["429 TooManyRequests", "500 InternalError", "503 SlowDown", "503 ServiceUnavailable"],
  ])("%s to any call", async (answer) => {
    const { bucket } = await bucketThat(fault(answer));
    expect(await endsOf(bucket)).toEqual(all("BucketUnavailable"));
  });

  test.each<[string, Answer]>([
    ["403 without a body", (response) => response.writeHead(403).end()],
    ["404 of an endpoint that is not S3", always404],
    ["404 of a web server", (response) => response.writeHead(404, { "Content-Type": "text/html" }).end("<p>no</p>")],
    ["a broken connection", (response) => response.destroy()],
  ])("%s to any call", async (_, answer) => {
    const { bucket } = await bucketThat(answer);
    expect(await endsOf(bucket)).toEqual(all("BucketUnavailable"));
  });

  test("200 with an error in the body to the completion of a multipart upload", async () => {
    const { bucket } = await bucketThat(fault("200 InternalError"));
    await expect(bucket.completeParts("a", "upload", ['"tag"'])).rejects.toMatchObject({ name: "BucketUnavailable" });
  });

  test("200 without the id of an upload, or without the tag of a part", async () => {
    const { bucket } = await bucketThat((response) =>
      response
        .writeHead(200, { "Content-Type": "application/xml" })
        .end("<InitiateMultipartUploadResult><Bucket>files</Bucket></InitiateMultipartUploadResult>"),
    );
    const begun = bucket.beginParts("a", { contentType: "text/csv" });
    await expect(begun).rejects.toThrow("the bucket answered with an upload in parts without an id");
    await expect(bucket.putPart("a", "upload", 1, Buffer.from("x"))).rejects.toThrow("a part without a tag");
  });
});

describe("the file is gone, and `info` and `abortParts` treat this as no error, after", () => {
  const gone = { ...all("FileGone"), info: undefined, abortParts: undefined };

  test.each(["404 NoSuchKey", "404 NoSuchUpload", "412 PreconditionFailed"])("%s", async (answer) => {
    const { bucket } = await bucketThat(fault(answer));
    expect(await endsOf(bucket)).toEqual(gone);
  });
});

describe("the size and tag of a file", () => {
  test("are those of the answer to HEAD", async () => {
    const { bucket, requests } = await bucketThat((response) =>
      response.writeHead(200, { "Content-Length": 12, ETag: '"tag"' }).end(),
    );
    expect(await bucket.info("a")).toEqual({ bytes: 12, etag: '"tag"' });
    expect(requests.map(({ method }) => method)).toEqual(["HEAD"]);
  });

  test("are also found if the file appears after the answer to HEAD, without a download of the file", async () => {
    const bytes = 50_000_000;
    let sent = 0;
    const { bucket } = await bucketThat((response, _, { method }) => {
      if (method === "HEAD") return response.writeHead(404).end();
      response.writeHead(200, { "Content-Length": bytes, ETag: '"tag"' });
      const more = (): void => {
        if (response.destroyed || sent === bytes) return;
        sent += 1_000_000;
        response.write(Buffer.alloc(1_000_000), more);
      };
      more();
    });
    expect(await bucket.info("a")).toEqual({ bytes, etag: '"tag"' });
    expect(sent).toBeLessThan(bytes);
  });
});

const TEXT = "0123456789".repeat(1_000);

/** Returns an answer with the bytes that the request asks for. Breaks the connection after `length` bytes. */
const broken =
  (length: number): Answer =>
  (response, _, request) => {
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const rest = TEXT.slice(from);
    const part = rest.slice(0, length);
    response.writeHead(from === 0 ? 200 : 206, { "Content-Length": rest.length, ETag: '"tag"' });
    if (part.length === rest.length) response.end(part);
    else if (part === "") response.flushHeaders();
    else response.write(part);
    if (part.length < rest.length) setTimeout(() => response.destroy(), 5);
  };

const rangesOf = (requests: readonly IncomingMessage[]) => requests.map(({ headers }) => headers.range);

describe("a download", () => {
  test("continues at the next byte each time the connection breaks, and accepts only the same file", async () => {
    const { bucket, requests } = await bucketThat(broken(900));
    expect(await readAll(bucket)).toBe(TEXT);
    expect(rangesOf(requests)).toEqual([undefined, ...Array.from({ length: 11 }, (_, i) => `bytes=${(i + 1) * 900}-`)]);
    expect(new Set(requests.map(({ headers }) => headers["if-match"]))).toEqual(new Set(['"tag"']));
  });

  test("fails after six attempts in a row without a byte, and counts anew after each byte", async () => {
    const none = await bucketThat(broken(0));
    await expect(readAll(none.bucket)).rejects.toMatchObject({
      name: "BucketUnavailable",
      message: "the bucket gave no more than 0 bytes of a",
    });
    expect(none.requests).toHaveLength(6);
    // A download fails after six attempts in a row without a byte. Attempt 6 returns bytes here, so the download fails at attempt 12.
    const some = await bucketThat((response, number, request) =>
      broken(number === 6 ? 900 : 0)(response, number, request),
    );
    await expect(readAll(some.bucket)).rejects.toThrow("the bucket gave no more than 900 bytes of a");
    expect(some.requests).toHaveLength(12);
  });

  test("ends if another file has replaced the file meanwhile", async () => {
    const { bucket } = await bucketThat((response, number, request) =>
      (number === 1 ? broken(900) : fault("412 PreconditionFailed"))(response, number, request),
    );
    await expect(readAll(bucket)).rejects.toMatchObject({ name: "FileGone" });
  });

  test("refuses a file that is stored with a content encoding, and accepts an empty name of one", async () => {
    const stored = (encoding: string): Answer => {
      const headers = { "Content-Length": TEXT.length, "Content-Encoding": encoding };
      return (response) => response.writeHead(200, headers).end(TEXT);
    };
    const { bucket } = await bucketThat(stored("gzip"));
    await expect(readAll(bucket)).rejects.toMatchObject({ name: "FileGone", message: "the file is stored compressed" });
    expect(await readAll((await bucketThat(stored(""))).bucket)).toBe(TEXT);
  });
});

test("a file of a company's export is undefined if it is missing, and any other answer is an error", async () => {
  const missing = await bucketThat(fault("404 NoSuchKey"));
  expect(await readFile({ s3: missing.s3, bucket: "files" }, "a")).toBeUndefined();
  const refusing = await bucketThat(fault("403 AccessDenied"));
  await expect(readFile({ s3: refusing.s3, bucket: "files" }, "a")).rejects.toMatchObject({ name: "AccessDenied" });
});
