/** The bucket for files: S3 by signed requests of `fetch`, each of which ends and is tried a few times, and links for others. */
import { setTimeout as sleep } from "node:timers/promises";
import type { SignatureV4 } from "@smithy/signature-v4";
import { hostOf, regionInUse, signerOf } from "#shared/aws/signing.ts";
import { setting } from "#shared/config.ts";

/** The bucket did not take or give a file within our tries. */
export class BucketUnavailable extends Error {
  override readonly name = "BucketUnavailable";
}

/** There is no such file, or not this one any more. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}

export interface BucketRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Until the answer begins, and for small ones until its end; default 6 s. */
  readonly timeoutMs?: number;
}

export interface BucketLink {
  readonly method: "GET" | "PUT";
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Whoever uses the link has to send exactly these. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly expiresInSeconds: number;
}

export interface Bucket {
  /** Sends until it is answered. Throws FileGone for 404 and 412, BucketUnavailable for anything else that is no success. */
  send(request: BucketRequest): Promise<Response>;
  /** Throws FileGone and BucketUnavailable: one try. */
  sendOnce(request: BucketRequest): Promise<Response>;
  /** A URL that carries its own signature. */
  link(link: BucketLink): Promise<string>;
}

const TRIES = 3;
/** For the largest file that a function holds in memory, over a slow line. */
const TIMEOUT_MS = 6_000;
/** The connection vouches for the body: hashing it again would take as long as sending it. */
const UNSIGNED = "UNSIGNED-PAYLOAD";

/** Reads the environment. */
export function openBucket(): Bucket {
  const endpoint = process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL;
  const name = setting("BUCKET_NAME");
  const url = new URL(
    endpoint === undefined
      ? `https://${name}.${hostOf("s3", regionInUse())}`
      : `${endpoint.replace(/\/$/, "")}/${name}`,
  );
  const signer = signerOf("s3");
  const sendOnce = async (request: BucketRequest): Promise<Response> => refused(await sent(signer, url, request));
  return {
    sendOnce,
    send: (request) => untilAnswered(() => sendOnce(request)),
    link: ({ method, key, query = {}, headers = {}, expiresInSeconds }) => {
      const unsigned = requestTo(url, { method, key, query, headers });
      return presigned(signer, unsigned, Object.keys(headers), expiresInSeconds);
    },
  };
}

/** What it sends may be sent twice. */
async function untilAnswered(send: () => Promise<Response>): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (attempt === TRIES || error instanceof FileGone) throw error;
      await sleep(Math.random() * 100 * 2 ** attempt);
    }
  }
}

/** Without the right to list the bucket, S3 answers 403 for what is not there. */
const gone: ReadonlySet<number> = new Set([403, 404, 412]);

async function refused(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  await answer.body?.cancel();
  if (gone.has(answer.status)) throw new FileGone(`the bucket answered ${answer.status}`);
  throw new BucketUnavailable(`the bucket answered ${answer.status}`);
}

interface Unsigned {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly headers: Record<string, string>;
}

function requestTo({ protocol, hostname, host, port, pathname }: URL, request: BucketRequest): Unsigned {
  const { method, key, query = {}, headers = {} } = request;
  return {
    method,
    protocol,
    hostname,
    ...(port !== "" && { port: Number(port) }),
    path: `${pathname.replace(/\/$/, "")}/${key.split("/").map(encodeURIComponent).join("/")}`,
    query: { ...query },
    headers: { host, ...headers },
  };
}

async function sent(signer: SignatureV4, url: URL, request: BucketRequest): Promise<Response> {
  const headers = { "x-amz-content-sha256": UNSIGNED, ...request.headers };
  const unsigned = requestTo(url, { ...request, headers });
  const { host: _, ...signed } = (await signer.sign(unsigned)).headers;
  // A body may take longer than its beginning: who reads it watches over it.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), request.timeoutMs ?? TIMEOUT_MS);
  try {
    return await fetch(addressOf(unsigned), {
      method: request.method,
      headers: signed,
      ...(request.body !== undefined && { body: Uint8Array.from(request.body) }),
      signal: late.signal,
    });
  } catch (cause) {
    throw new BucketUnavailable("the bucket did not answer", { cause });
  } finally {
    clearTimeout(timer);
  }
}

async function presigned(
  signer: SignatureV4,
  unsigned: Unsigned,
  signedHeaders: readonly string[],
  expiresIn: number,
): Promise<string> {
  const { query = {} } = await signer.presign(
    { ...unsigned, headers: { ...unsigned.headers, "x-amz-content-sha256": UNSIGNED } },
    {
      expiresIn,
      // Signed as headers, so that nobody can leave one out or send another.
      signableHeaders: new Set(["host", ...signedHeaders]),
      unhoistableHeaders: new Set(signedHeaders),
    },
  );
  return addressOf({ ...unsigned, query: textsIn(query) });
}

function textsIn(query: Readonly<Record<string, string | string[] | null>>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value ?? "")]));
}

function addressOf({ protocol, headers, path, query }: Unsigned): string {
  const parameters = Object.entries(query).map(([name, value]) => `${escaped(name)}=${escaped(value)}`);
  return `${protocol}//${headers.host}${path}${parameters.length === 0 ? "" : `?${parameters.join("&")}`}`;
}

/** As the signer escapes what it signs: RFC 3986. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
