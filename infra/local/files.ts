/**
 * S3 as a deployed bucket behaves, before the S3 server of this machine: links are held to what was signed, an upload that must
 * be the first is, its checksum is compared, files may be large, queues are told of what is new, and pages of other origins are
 * let in.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  request as sendHttp,
} from "node:http";
import { buffer } from "node:stream/consumers";
import { originHeaders, preflight } from "./bucket-cors.ts";
import { LocalError } from "./error.ts";
import { type FileRights, fileAction, signerOf } from "./file-rights.ts";
import { linkFault } from "./links.ts";
import { nameOfArn, REGION } from "./names.ts";
import { type QueueServer, sendMessage } from "./queues.ts";
import type { Stack } from "./stack.ts";

export interface FileServer {
  readonly endpoint: string;
  /** From now on these buckets say which queues are told, and which pages let in. */
  tell(buckets: Stack["buckets"]): void;
  /** From now on functions may do what their policies grant. */
  guard(rights: FileRights): void;
  stop(): void;
}

/** The server behind takes no more at once. */
const PART_BYTES = 8 * 1024 * 1024;

/** Of one request to an object. */
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
  const server = createServer((request, response) => {
    void files.handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new LocalError("the file server has no port");
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    tell: (buckets) => {
      files.buckets = buckets;
    },
    guard: (rights) => {
      files.rights = rights;
    },
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

class Files {
  readonly #queues: QueueServer;
  buckets: Stack["buckets"] = [];
  rights: FileRights | undefined;

  constructor(queues: QueueServer) {
    this.#queues = queues;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    const url = new URL(request.url ?? "/", this.#queues.endpoint);
    const [, bucket = "", ...path] = url.pathname.split("/");
    const body = await buffer(request);
    const call = { request, url, bucket, key: decodeURIComponent(path.join("/")), body };
    const toPages = originHeaders(this.#bucketOf(call), method, headers);
    try {
      const answer = await this.#answerTo(call);
      if (isOk(answer) && isNewObject(call)) await this.#tellQueues(call, answer);
      response.writeHead(answer.status, { ...answer.headers, ...toPages });
      response.end(answer.body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      response.writeHead(error.status, { "Content-Type": "application/xml", ...toPages });
      response.end(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${error.code}</Code></Error>`);
    }
  }

  #bucketOf({ bucket }: Call): Stack["buckets"][number] | undefined {
    return this.buckets.find(({ name }) => name === bucket);
  }

  async #answerTo(call: Call): Promise<Answered> {
    const { request, url, body } = call;
    if (request.method === "OPTIONS") return this.#answerPreflight(call);
    const fault = linkFault(request, url);
    if (fault !== undefined) throw new Refused(403, fault);
    const signer = signerOf(request, url);
    if (this.rights?.mayDo(signer, fileAction(request.method, url), call.key) === false) {
      throw new Refused(403, "AccessDenied");
    }
    if (request.method === "PUT" && !url.searchParams.has("uploadId")) return this.#put(call);
    const answer = await this.#forward(call, body);
    const isHidden = answer.status === 404 && this.rights?.mayList(signer) === false;
    if (isHidden && (request.method === "GET" || request.method === "HEAD")) throw new Refused(403, "AccessDenied");
    return answer;
  }

  /** Nobody signs it: the browser asks before it uses a link. */
  #answerPreflight(call: Call): Answered {
    const headers = preflight(this.#bucketOf(call), call.request.headers);
    if (typeof headers !== "string") return { status: 200, headers, body: Buffer.alloc(0) };
    throw new Refused(headers === "BadRequest" ? 400 : 403, headers);
  }

  async #put(call: Call): Promise<Answered> {
    const { headers } = call.request;
    const checksum = headers["x-amz-checksum-sha256"];
    const isIntact = createHash("sha256").update(call.body).digest("base64") === checksum;
    if (checksum !== undefined && !isIntact) throw new Refused(400, "BadDigest");
    if (headers["if-none-match"] === "*" && isOk(await this.#ask(call, "HEAD", ""))) {
      throw new Refused(412, "PreconditionFailed");
    }
    return call.body.length <= PART_BYTES ? this.#forward(call, call.body) : this.#putInParts(call);
  }

  #forward({ request, url }: Call, body: Buffer): Promise<Answered> {
    const { host: _, connection: __, "if-none-match": ___, ...headers } = request.headers;
    return sendOn(`${this.#queues.endpoint}${url.pathname}${url.search}`, request.method ?? "GET", headers, body);
  }

  #ask({ url, request }: Call, method: string, query: string, body: Buffer = Buffer.alloc(0)): Promise<Answered> {
    const headers = { "content-type": request.headers["content-type"] ?? "application/octet-stream" };
    return sendOn(`${this.#queues.endpoint}${url.pathname}${query}`, method, headers, body);
  }

  async #putInParts(call: Call): Promise<Answered> {
    const begun = await this.#ask(call, "POST", "?uploads=");
    const uploadId = /<UploadId>([^<]+)</.exec(begun.body.toString())?.[1] ?? "";
    const tags: string[] = [];
    for (let at = 0; at < call.body.length; at += PART_BYTES) {
      const query = `?partNumber=${tags.length + 1}&uploadId=${uploadId}`;
      const part = await this.#ask(call, "PUT", query, call.body.subarray(at, at + PART_BYTES));
      tags.push(part.headers.etag ?? "");
    }
    const list = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`);
    const body = Buffer.from(`<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`);
    return this.#ask(call, "POST", `?uploadId=${uploadId}`, body);
  }

  async #tellQueues(call: Call, answer: Answered): Promise<void> {
    const { bucket, key, body } = call;
    for (const { Queue, Filter } of this.#bucketOf(call)?.NotificationConfiguration?.QueueConfigurations ?? []) {
      const isMeant = Filter.S3Key.Rules.every(({ Name, Value }) =>
        Name === "prefix" ? key.startsWith(Value) : key.endsWith(Value),
      );
      const object = { key: encodeURIComponent(key).replaceAll("%2F", "/"), size: body.length };
      if (isMeant) await sendMessage(this.#queues, nameOfArn(Queue), created(bucket, object, answer.headers.etag));
    }
  }
}

function isNewObject({ request: { method }, url: { searchParams }, key }: Call): boolean {
  if (key === "") return false;
  if (method === "PUT") return !searchParams.has("uploadId");
  return method === "POST" && searchParams.has("uploadId");
}

interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const isOk = ({ status }: Answered): boolean => status >= 200 && status < 300;

/** Nothing is unpacked on the way. */
function sendOn(url: string, method: string, headers: IncomingHttpHeaders, body: Buffer): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = sendHttp(url, { method, headers: { ...headers, "content-length": body.length } }, (answer) => {
      const { statusCode: status = 502, headers: told } = answer;
      buffer(answer).then((bytes) => resolve({ status, headers: told, body: bytes }), reject);
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

/** The event as S3 writes it. */
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
