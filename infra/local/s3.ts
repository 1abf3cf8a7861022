/**
 * A proxy that makes the local S3 server behave like a bucket of a deployment. It checks presigned URLs, rights, checksums and conditional
 * writes, sends notifications of new objects, and applies the bucket's CORS rules.
 */
import { createHash, createHmac } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, request as sendHttp } from "node:http";
import { buffer } from "node:stream/consumers";
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  NotFound,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { s3At } from "./clients.ts";
import { serveOnLoopback } from "./listener.ts";
import { nameOfArn, REGION } from "./names.ts";
import { type FileRights, fileAction } from "./rights.ts";
import { type QueueServer, sendMessage } from "./sqs.ts";
import type { Stack } from "./stack.ts";

export interface FileServer {
  readonly endpoint: string;
  /** Sets the buckets whose notifications and CORS rules the server applies. */
  configure(buckets: Stack["buckets"]): void;
  /** After this call, the server refuses each request of a Lambda function that the function's IAM policies do not allow. */
  enforce(rights: FileRights): void;
  stop(): void;
}

/**
 * The local S3 server accepts at most 11 MiB in one request. So a larger object is stored as a multipart upload with parts of this size.
 */
const PART_BYTES = 8 * 1024 * 1024;

interface Call {
  readonly request: IncomingMessage;
  readonly url: URL;
  readonly bucket: string;
  readonly key: string;
  readonly body: Buffer;
}

class Refused extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string) {
    super(code);
    this.status = status;
    this.code = code;
  }
}

export async function startFiles(queues: QueueServer): Promise<FileServer> {
  const files = new Files(queues);
  const server = await serveOnLoopback((request, response) => files.handle(request, response));
  return {
    endpoint: server.endpoint,
    configure: (buckets) => {
      files.buckets = buckets;
    },
    enforce: (rights) => {
      files.rights = rights;
    },
    stop: () => {
      server.stop();
      files.s3.destroy();
    },
  };
}

class Files {
  readonly #queues: QueueServer;
  readonly s3: S3Client;
  buckets: Stack["buckets"] = [];
  rights: FileRights | undefined;

  constructor(queues: QueueServer) {
    this.#queues = queues;
    this.s3 = s3At(queues.endpoint);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    const url = new URL(request.url ?? "/", this.#queues.endpoint);
    const [, bucket = "", ...path] = url.pathname.split("/");
    const body = await buffer(request);
    const call = { request, url, bucket, key: decodeURIComponent(path.join("/")), body };
    const cors = corsHeaders(this.#bucketOf(call), method, headers);
    try {
      const answer = await this.#answerTo(call);
      if (isOk(answer) && isNewObject(call)) await this.#notify(call, answer);
      response.writeHead(answer.status, { ...answer.headers, ...cors });
      response.end(answer.body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      response.writeHead(error.status, { "Content-Type": "application/xml", ...cors });
      response.end(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${error.code}</Code></Error>`);
    }
  }

  #bucketOf({ bucket }: Call): Stack["buckets"][number] | undefined {
    return this.buckets.find(({ name }) => name === bucket);
  }

  async #answerTo(call: Call): Promise<Answer> {
    const { request, url } = call;
    if (request.method === "OPTIONS") return this.#answerPreflight(call);
    const fault = linkFault(request, url);
    if (fault !== undefined) throw new Refused(403, fault);
    const signer = signerOf(request, url);
    if (this.rights?.mayDo(signer, fileAction(request.method, url), call.key) === false) {
      throw new Refused(403, "AccessDenied");
    }
    if (request.method === "PUT" && !url.searchParams.has("uploadId")) return this.#put(call);
    const answer = await this.#forward(call);
    const isHidden = answer.status === 404 && this.rights?.mayList(signer) === false;
    if (isHidden && (request.method === "GET" || request.method === "HEAD")) throw new Refused(403, "AccessDenied");
    return answer;
  }

  /**
   * Responds to a CORS preflight. Does not check the signature of a presigned URL, because the signature is for the method of the later
   * request and not for `OPTIONS`.
   */
  #answerPreflight(call: Call): Answer {
    const headers = preflight(this.#bucketOf(call), call.request.headers);
    if (typeof headers !== "string") return { status: 200, headers, body: Buffer.alloc(0) };
    throw new Refused(headers === "BadRequest" ? 400 : 403, headers);
  }

  async #put(call: Call): Promise<Answer> {
    const { headers } = call.request;
    const checksum = headers["x-amz-checksum-sha256"];
    const isIntact = createHash("sha256").update(call.body).digest("base64") === checksum;
    if (checksum !== undefined && !isIntact) throw new Refused(400, "BadDigest");
    if (headers["if-none-match"] === "*" && (await this.#exists(call))) throw new Refused(412, "PreconditionFailed");
    return call.body.length <= PART_BYTES ? this.#forward(call) : this.#putInParts(call);
  }

  async #exists({ bucket: Bucket, key: Key }: Call): Promise<boolean> {
    try {
      await this.s3.send(new HeadObjectCommand({ Bucket, Key }));
      return true;
    } catch (error) {
      if (error instanceof NotFound) return false;
      throw error;
    }
  }

  #forward({ request: { method, headers: all }, url, body }: Call): Promise<Answer> {
    const { host: _, connection: __, "if-none-match": ___, ...headers } = all;
    return send(`${this.#queues.endpoint}${url.pathname}${url.search}`, method ?? "GET", headers, body);
  }

  async #putInParts({ request, bucket: Bucket, key: Key, body }: Call): Promise<Answer> {
    const ContentType = request.headers["content-type"] ?? "application/octet-stream";
    const { UploadId } = await this.s3.send(new CreateMultipartUploadCommand({ Bucket, Key, ContentType }));
    const target = { Bucket, Key, UploadId };
    const Parts: { PartNumber: number; ETag: string | undefined }[] = [];
    for (let at = 0; at < body.length; at += PART_BYTES) {
      const PartNumber = Parts.length + 1;
      const part = { ...target, PartNumber, Body: body.subarray(at, at + PART_BYTES) };
      Parts.push({ PartNumber, ETag: (await this.s3.send(new UploadPartCommand(part))).ETag });
    }
    const { ETag: etag = "" } = await this.s3.send(
      new CompleteMultipartUploadCommand({ ...target, MultipartUpload: { Parts } }),
    );
    return { status: 200, headers: { etag }, body: Buffer.alloc(0) };
  }

  async #notify(call: Call, answer: Answer): Promise<void> {
    const { bucket, key, body } = call;
    for (const { Queue, Filter } of this.#bucketOf(call)?.NotificationConfiguration?.QueueConfigurations ?? []) {
      const matches = Filter.S3Key.Rules.every(({ Name, Value }) =>
        Name === "prefix" ? key.startsWith(Value) : key.endsWith(Value),
      );
      const object = { key: encodeURIComponent(key).replaceAll("%2F", "/"), size: body.length };
      if (matches) await sendMessage(this.#queues, nameOfArn(Queue), created(bucket, object, answer.headers.etag));
    }
  }
}

function isNewObject({ request: { method }, url: { searchParams }, key }: Call): boolean {
  if (key === "") return false;
  if (method === "PUT") return !searchParams.has("uploadId");
  return method === "POST" && searchParams.has("uploadId");
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const isOk = ({ status }: Answer): boolean => status >= 200 && status < 300;

function send(url: string, method: string, headers: IncomingHttpHeaders, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = sendHttp(url, { method, headers: { ...headers, "content-length": body.length } }, (answer) => {
      const { statusCode: status = 502, headers: received } = answer;
      buffer(answer).then((bytes) => resolve({ status, headers: received, body: bytes }), reject);
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

const created = (bucket: string, object: { key: string; size: number }, etag: string | undefined): object => ({
  Records: [
    {
      eventVersion: "2.1",
      eventSource: "aws:s3",
      awsRegion: REGION,
      eventTime: new Date().toISOString(),
      eventName: "ObjectCreated:Put",
      s3: {
        s3SchemaVersion: "1.0",
        bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` },
        object: { ...object, eTag: (etag ?? "").replaceAll('"', "") },
      },
    },
  ],
});

/**
 * Returns the access key ID from the header `Authorization` or from the presigned URL. In the local service, each Lambda function has its
 * own name as access key ID.
 */
function signerOf({ headers }: IncomingMessage, { searchParams }: URL): string {
  const signed = /Credential=([^/]+)\//.exec(headers.authorization ?? "")?.[1];
  return signed ?? searchParams.get("X-Amz-Credential")?.split("/")[0] ?? "";
}

const SECRET = "local";

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const mac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * Returns S3's error code for a presigned URL that has expired, or that was signed for another method, key or header. Returns undefined if
 * the URL is valid or not presigned.
 */
function linkFault(request: IncomingMessage, url: URL): string | undefined {
  const { searchParams } = url;
  const signature = searchParams.get("X-Amz-Signature");
  if (signature === null) return undefined;
  const date = searchParams.get("X-Amz-Date") ?? "";
  const endsAt = instantOf(date) + Number(searchParams.get("X-Amz-Expires")) * 1_000;
  if (!(Date.now() < endsAt)) return "AccessDenied";
  const [, day = "", region = "", service = ""] = (searchParams.get("X-Amz-Credential") ?? "").split("/");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", date, scope, hash(canonical(request, url))].join("\n");
  const key = [day, region, service, "aws4_request"].reduce<string | Buffer>(mac, `AWS4${SECRET}`);
  return mac(key, toSign).toString("hex") === signature ? undefined : "SignatureDoesNotMatch";
}

function canonical({ method, headers }: IncomingMessage, { pathname, searchParams }: URL): string {
  const query = [...searchParams]
    .filter(([name]) => name !== "X-Amz-Signature")
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .toSorted();
  const names = (searchParams.get("X-Amz-SignedHeaders") ?? "").split(";");
  const lines = names.map((name) => `${name}:${String(headers[name] ?? "").trim()}`);
  return [method, pathname, query.join("&"), ...lines, "", names.join(";"), "UNSIGNED-PAYLOAD"].join("\n");
}

function instantOf(date: string): number {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  const [year = Number.NaN, month = 1, ...rest] = parts.map(Number);
  const [day = 1, hour, minute, second] = rest;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

type Bucket = Stack["buckets"][number];
type Rule = NonNullable<Bucket["CorsConfiguration"]>["CorsRules"][number];
type Headers = Readonly<Record<string, string>>;

/** The value of the header `Vary`. Without this header, a cache could use the response for one origin for a request from another origin. */
const VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";

/** Returns the CORS headers of a response. Returns no headers if no CORS rule allows the origin and the method. */
export function corsHeaders(bucket: Bucket | undefined, method: string, { origin }: IncomingHttpHeaders): Headers {
  const rule = origin === undefined ? undefined : ruleFor(bucket, origin, method, []);
  return rule === undefined || origin === undefined ? {} : headersOf(rule, origin);
}

/** Returns the headers of the response to a CORS preflight. Returns S3's error code instead if no rule allows the request. */
export function preflight(
  bucket: Bucket | undefined,
  { origin, ...headers }: IncomingHttpHeaders,
): Headers | "BadRequest" | "AccessForbidden" {
  const method = headers["access-control-request-method"];
  if (origin === undefined || method === undefined) return "BadRequest";
  const asked = namesIn(headers["access-control-request-headers"] ?? "");
  const rule = ruleFor(bucket, origin, method, asked);
  if (rule === undefined) return "AccessForbidden";
  return {
    ...headersOf(rule, origin),
    ...(asked.length > 0 && { "Access-Control-Allow-Headers": asked.join(", ") }),
    ...(rule.MaxAge !== undefined && { "Access-Control-Max-Age": String(rule.MaxAge) }),
  };
}

const namesIn = (list: string): string[] =>
  list
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");

const ruleFor = (bucket: Bucket | undefined, origin: string, method: string, asked: readonly string[]) =>
  bucket?.CorsConfiguration?.CorsRules.find(
    ({ AllowedOrigins, AllowedMethods, AllowedHeaders }) =>
      AllowedOrigins.some((allowed) => allowed === "*" || allowed === origin) &&
      AllowedMethods.some((allowed) => allowed === method) &&
      asked.every((name) => AllowedHeaders.some((allowed) => allowed === "*" || allowed.toLowerCase() === name)),
  );

const headersOf = ({ AllowedOrigins, AllowedMethods, ExposedHeaders }: Rule, origin: string): Headers => ({
  ...(AllowedOrigins.includes("*")
    ? { "Access-Control-Allow-Origin": "*" }
    : { "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true" }),
  "Access-Control-Allow-Methods": AllowedMethods.join(", "),
  ...(ExposedHeaders.length > 0 && { "Access-Control-Expose-Headers": ExposedHeaders.join(", ") }),
  Vary: VARY,
});
