/**
 * Makes fauxqs, the local server of S3, behave like a bucket of a deployment: with presigned URLs, rights, checksums, conditional writes,
 * notifications of new objects and CORS rules.
 */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { buildApp } from "fauxqs";
import { REGION } from "../servers/address.ts";
import { nameOfArn } from "../template/names.ts";
import type { Stack } from "../template/stack.ts";
import { callerOf } from "./caller.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { type FileRights, fileAction } from "./policies.ts";
import { linkFault } from "./presigned.ts";

export type App = ReturnType<typeof buildApp>;

/** The parts of Fastify's request and reply that `BucketRules` needs. fauxqs runs on Fastify. */
interface Request {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly raw: IncomingMessage;
}
interface Reply {
  readonly statusCode: number;
  code(status: number): { type(mediaType: string): unknown };
  getHeader(name: string): unknown;
  send(payload: string): unknown;
}

/** Maximum size of an object. fauxqs itself accepts at most 11 MiB in one request. */
const MAX_OBJECT_BYTES = 2 ** 30;

interface Call {
  readonly method: string;
  readonly url: URL;
  readonly bucket: string;
  readonly key: string;
}

function callOf({ method, url: target }: Request): Call {
  const url = new URL(target, "http://bucket.invalid");
  const [, bucket = "", ...path] = url.pathname.split("/");
  return { method, url, bucket, key: decodeURIComponent(path.join("/")) };
}

/** A PUT with an upload id writes only a part of an object. */
const isWholePut = ({ method, url }: Call): boolean => method === "PUT" && !url.searchParams.has("uploadId");

const isNewObject = (call: Call): boolean =>
  call.key !== "" && (isWholePut(call) || (call.method === "POST" && call.url.searchParams.has("uploadId")));

export class BucketRules {
  /** The buckets whose notifications and CORS rules apply. */
  buckets: Stack["buckets"] = [];
  /** If it is set, each request of a Lambda function needs a right of the function's IAM policies. */
  rights: FileRights | undefined;
  readonly #send: (queue: string, message: object) => Promise<void>;

  constructor(send: (queue: string, message: object) => Promise<void>) {
    this.#send = send;
  }

  /** Adds the rules to fauxqs. Call it before fauxqs adds its routes. Requests to queues have the path `/`, all others are to buckets. */
  addTo(app: App): void {
    app.addHook("onRoute", (route) => {
      const { handler } = route;
      route.bodyLimit = MAX_OBJECT_BYTES;
      // Return the reply, because the handlers of fauxqs return nothing. Fastify would then send the reply again during the hook `onSend`.
      route.handler = async function (request, reply) {
        return (await handler.call(this, request, reply)) ?? reply;
      };
    });
    app.addHook("onRequest", async (request, reply) => {
      if (request.url === "/") return;
      const call = callOf(request);
      reply.headers(corsHeaders(this.#bucketOf(call), call.method, request.headers));
      const fault = call.method === "OPTIONS" ? undefined : await this.#faultOf(request, call);
      if (fault !== undefined) return refuse(reply, 403, fault);
    });
    app.addHook("preHandler", async (request, reply) => {
      if (request.url === "/" || !isWholePut(callOf(request))) return;
      const checksum = request.headers["x-amz-checksum-sha256"];
      if (checksum !== undefined && checksum !== sha256(request.body)) return refuse(reply, 400, "BadDigest");
      if (request.headers["if-none-match"] !== "*") return;
      const { statusCode } = await app.inject({ method: "HEAD", url: callOf(request).url.pathname });
      if (statusCode !== 404) return refuse(reply, 412, "PreconditionFailed");
    });
    app.addHook("onSend", async (request, reply, payload) => {
      if (request.url === "/") return payload;
      const call = callOf(request);
      if (isNewObject(call) && reply.statusCode === 200) await this.#notify(call, request, reply);
      return this.#isHidden(request, call, reply) ? refusal(reply, 403, "AccessDenied") : payload;
    });
    // Check no signature here: the signature of a presigned URL is for the method of the request that follows the preflight.
    app.options("/*", async (request, reply) => {
      const answer = preflight(this.#bucketOf(callOf(request)), request.headers);
      if (typeof answer === "string") return refuse(reply, answer === "BadRequest" ? 400 : 403, answer);
      return reply.headers(answer).send();
    });
  }

  #bucketOf({ bucket }: Call): Stack["buckets"][number] | undefined {
    return this.buckets.find(({ name }) => name === bucket);
  }

  async #faultOf(request: Request, { url, method, key }: Call): Promise<string | undefined> {
    const fault = await linkFault(request.raw, url);
    if (fault !== undefined) return fault;
    const isRefused = this.rights?.mayDo(signerOf(request, url), fileAction(method, url), key) === false;
    return isRefused ? "AccessDenied" : undefined;
  }

  /** Returns true if S3 hides that an object is missing. It responds with 403 instead of 404 to a caller that may not list the bucket. */
  #isHidden(request: Request, { url, method }: Call, { statusCode }: Reply): boolean {
    const reads = method === "GET" || method === "HEAD";
    return reads && statusCode === 404 && this.rights?.mayList(signerOf(request, url)) === false;
  }

  async #notify(call: Call, { body }: Request, reply: Reply): Promise<void> {
    const { bucket: name, key } = call;
    for (const { Queue, Filter } of this.#bucketOf(call)?.NotificationConfiguration?.QueueConfigurations ?? []) {
      if (!key.startsWith(Filter.S3Key.Rules[0].Value)) continue;
      // After a multipart upload, the notification has an empty eTag, because the response of fauxqs has no ETag header.
      const eTag = String(reply.getHeader("etag") ?? "").replaceAll('"', "");
      const object = { key: encodeURIComponent(key).replaceAll("%2F", "/"), size: bytesOf(body).length, eTag };
      await this.#send(nameOfArn(Queue), created(name, object));
    }
  }
}

const bytesOf = (body: unknown): Buffer => (Buffer.isBuffer(body) ? body : Buffer.alloc(0));
const sha256 = (body: unknown): string => createHash("sha256").update(bytesOf(body)).digest("base64");

function refusal(reply: Reply, status: number, code: string): string {
  reply.code(status).type("application/xml");
  return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`;
}

const refuse = (reply: Reply, status: number, code: string): unknown => reply.send(refusal(reply, status, code));

const created = (bucket: string, object: object): object => ({
  Records: [
    {
      eventVersion: "2.1",
      eventSource: "aws:s3",
      awsRegion: REGION,
      eventTime: new Date().toISOString(),
      eventName: "ObjectCreated:Put",
      s3: { s3SchemaVersion: "1.0", bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` }, object },
    },
  ],
});

/** Returns the access key that has signed a request. It is in a header, or in the query of a presigned URL. */
function signerOf({ headers }: Request, { searchParams }: URL): string {
  return callerOf(headers) ?? String(searchParams.get("X-Amz-Credential")?.split("/")[0]);
}
