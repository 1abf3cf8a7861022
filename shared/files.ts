/** The bucket for files: S3 by signed requests of `fetch`, each of which ends and is tried a few times. */
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SignatureV4 } from "@smithy/signature-v4";
import { setting } from "#shared/config.ts";

export interface Files {
  /** Writes the whole file, over one that stands there. */
  put(key: string, bytes: Uint8Array, contentType: string): Promise<void>;
  /** Throws where there is none. */
  get(key: string): Promise<ReadableStream<Uint8Array>>;
}

const TRIES = 3;
/** For the largest file that a function holds in memory, over a slow line. */
const TIMEOUT_MS = 6_000;

/** The bucket did not take or give a file within our tries. */
export class BucketUnavailable extends Error {
  override readonly name = "BucketUnavailable";
}

/** Nothing is read or connected before the first file. */
export function openFiles(): Files {
  let bucket: Bucket | undefined;
  const send = (method: "GET" | "PUT", key: string, body?: Uint8Array, contentType?: string): Promise<Response> => {
    bucket ??= openBucket();
    return sendUntilAnswered(bucket, method, key, body, contentType);
  };
  return {
    put: async (key, bytes, contentType) => {
      await (await send("PUT", key, bytes, contentType)).arrayBuffer();
    },
    get: async (key) => {
      const { body } = await send("GET", key);
      if (body === null) throw new BucketUnavailable(`the bucket gave no body for ${key}`);
      return body;
    },
  };
}

interface Bucket {
  readonly signer: SignatureV4;
  /** Without a slash at the end. */
  readonly url: URL;
}

function openBucket(): Bucket {
  const { AWS_REGION: region = "us-east-1", AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  const endpoint = process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL;
  const name = setting("BUCKET_NAME");
  const credentials = {
    accessKeyId: AWS_ACCESS_KEY_ID ?? "",
    secretAccessKey: AWS_SECRET_ACCESS_KEY ?? "",
    ...(AWS_SESSION_TOKEN !== undefined && { sessionToken: AWS_SESSION_TOKEN }),
  };
  return {
    // S3 takes a path as it stands, where other services escape it once more.
    signer: new SignatureV4({ service: "s3", region, credentials, sha256: Sha256, uriEscapePath: false }),
    url: new URL(
      endpoint === undefined ? `https://${name}.s3.${region}.amazonaws.com` : `${endpoint.replace(/\/$/, "")}/${name}`,
    ),
  };
}

type SourceData = string | ArrayBuffer | ArrayBufferView;

/** The signer's idea of a hash, on Node's own. */
class Sha256 {
  readonly #hash: Hash | Hmac;
  constructor(secret?: SourceData) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(secret));
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    throw new Error("a hash is used once");
  }
}

function bytesOf(data: SourceData): Uint8Array | string {
  if (typeof data === "string") return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

/** What it sends may be sent twice. */
async function sendUntilAnswered(
  bucket: Bucket,
  method: string,
  key: string,
  body: Uint8Array | undefined,
  contentType: string | undefined,
): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const answer = await sendOnce(bucket, method, key, body, contentType).catch(
      (cause: unknown) => new BucketUnavailable("the bucket did not answer", { cause }),
    );
    if (answer instanceof Response && answer.ok) return answer;
    if (attempt === TRIES) {
      throw answer instanceof Response ? new BucketUnavailable(`the bucket answered ${answer.status}`) : answer;
    }
    if (answer instanceof Response) await answer.body?.cancel();
    await sleep(Math.random() * 100 * 2 ** attempt);
  }
}

async function sendOnce(
  { signer, url }: Bucket,
  method: string,
  key: string,
  body: Uint8Array | undefined,
  contentType: string | undefined,
): Promise<Response> {
  const { protocol, hostname, host, port } = url;
  const path = `${url.pathname.replace(/\/$/, "")}/${key.split("/").map(encodeURIComponent).join("/")}`;
  const { headers } = await signer.sign({
    method,
    protocol,
    hostname,
    ...(port !== "" && { port: Number(port) }),
    path,
    query: {},
    // The connection vouches for the body: hashing it again would take as long as sending it.
    headers: {
      host,
      "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
      ...(contentType !== undefined && { "content-type": contentType }),
    },
  });
  const { host: _, ...sent } = headers;
  return fetch(`${protocol}//${host}${path}`, {
    method,
    headers: sent,
    ...(body !== undefined && { body: Uint8Array.from(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
}
