/** Sends one POST to an address that the URL policy permits. Follows no redirect, and reads only the beginning of the answer. */
import { Agent as HttpAgent, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { performance } from "node:perf_hooks";
import type { UrlPolicy } from "#shared/config.ts";
import * as limits from "#shared/limits.ts";
import { LookupFailed, type Resolve } from "#shared/outbound/dns.ts";
import { addressesFault, parseTarget, resolverFor } from "#shared/outbound/public-url.ts";

export interface Exchange {
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string;
  readonly retryAfter: string | undefined;
  readonly latencyMs: number;
  /** True if the failed request never left this process. The receiver may be working. */
  readonly isUnsent?: true;
}

export interface Post {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Posts to a receiver. Never throws: after a failure, `error` of the result has the reason. */
export async function post(
  { url, body, headers }: Post,
  policy: UrlPolicy,
  resolve: Resolve = resolverFor(policy),
): Promise<Exchange> {
  const started = performance.now();
  const signal = AbortSignal.timeout(limits.exchangeMs);
  let isLookingUp = false;
  async function trackedResolve(host: string): ReturnType<Resolve> {
    isLookingUp = true;
    const addresses = await resolve(host);
    isLookingUp = false;
    return addresses;
  }
  try {
    const answer = await send({
      target: parseTarget(url, policy),
      body,
      headers,
      lookup: vettedLookup(policy, trackedResolve),
      signal,
    });
    return { ...answer, error: null, latencyMs: performance.now() - started };
  } catch (error) {
    const reason = signal.aborted ? `no answer within ${limits.exchangeMs} ms` : reasonOf(error);
    const failed = { status: null, error: reason, answer: "", retryAfter: undefined };
    const isUnsent = signal.aborted ? isLookingUp : neverLeft(error);
    return { ...failed, latencyMs: performance.now() - started, ...(isUnsent && { isUnsent }) };
  }
}

/** Node's HTTP client has rejected the request, for example because of an invalid header. */
class NotBuilt extends Error {
  override readonly name = "NotBuilt";
}

/** Error codes of `connect` that this machine causes, for example because it has no free socket, port or route. */
const ownFaults = new Set([
  ...["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EACCES", "EPERM"],
  ...["EADDRNOTAVAIL", "EADDRINUSE", "EAFNOSUPPORT", "ENETUNREACH", "ENETDOWN"],
]);

function neverLeft(error: unknown): boolean {
  if (error instanceof LookupFailed || error instanceof NotBuilt) return true;
  // Node throws an AggregateError with one error for each address that it has tried.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(neverLeft);
  if (!(error instanceof Error && "code" in error && "syscall" in error)) return false;
  return error.syscall === "connect" && ownFaults.has(String(error.code));
}

type Answer = Pick<Exchange, "status" | "answer" | "retryAfter">;

/** Milliseconds until the service closes an idle connection. Most receivers wait longer, so a request rarely meets a closed connection. */
const IDLE_MS = 1_000;

/**
 * Requests to one URL reuse a connection. Different URLs never share one, because a late response to one webhook could be taken for the
 * response to another. Node's global agents may use a proxy, which would resolve the name without our check.
 */
const keepAlive = { keepAlive: true, timeout: IDLE_MS, scheduling: "lifo" } as const;
const secure = { request: requestHttps, agent: perUrl(new HttpsAgent({ ...keepAlive, maxCachedSessions: 0 })) };
const plain = { request: requestHttp, agent: perUrl(new HttpAgent(keepAlive)) };

type PoolOptions = Parameters<HttpAgent["getName"]>[0] & { readonly poolUrl?: string };

/** Makes an agent reuse a connection only for the same `poolUrl`. By default, all requests to the same host and port share connections. */
function perUrl<A extends HttpAgent>(agent: A): A {
  const nameOf = agent.getName.bind(agent);
  agent.getName = (options?: PoolOptions) => `${nameOf(options)} ${options?.poolUrl ?? ""}`;
  return agent;
}

/** The time at which each connection was opened, in milliseconds of a monotonic clock. */
const openedAt = new WeakMap<Socket, number>();

interface Sending {
  readonly target: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly lookup: LookupFunction;
  readonly signal: AbortSignal;
}

/** The receiver had probably closed a reused connection before the request arrived. The request is sent again on a new connection. */
class StaleConnection extends Error {}

async function send(sending: Sending): Promise<Answer> {
  try {
    return await sendOnce(sending, true);
  } catch (error) {
    if (error instanceof StaleConnection) return sendOnce(sending, false);
    throw error;
  }
}

const isClosed = (error: Error): boolean => "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");

function sendOnce({ target, body, headers, lookup, signal }: Sending, mayReuse: boolean): Promise<Answer> {
  const { request, agent } = target.protocol === "https:" ? secure : plain;
  const options = {
    method: "POST",
    headers: { ...headers, "Content-Length": Buffer.byteLength(body), "Accept-Encoding": "identity" },
    lookup,
    agent: mayReuse && agent,
    poolUrl: target.href,
    signal,
  };
  return new Promise((resolve, reject) => {
    const sent = built(() => request(target, options));
    let bytesBefore = 0;
    sent.on("socket", (socket) => {
      bytesBefore = sent.reusedSocket ? socket.bytesRead : 0;
      if (!sent.reusedSocket) openedAt.set(socket, performance.now());
    });
    const isSilent = (): boolean => sent.socket?.bytesRead === bytesBefore;
    sent.on("error", (error) =>
      reject(sent.reusedSocket && isSilent() && isClosed(error) ? new StaleConnection() : error),
    );
    // If the receiver switches protocols, there is no event `response`, so only this event ends the request.
    sent.on("close", () => reject(new Error("the connection closed without an answer")));
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const finish = (): void => {
        const beginning = Buffer.concat(chunks).subarray(0, limits.answerKeptBytes);
        const retryAfter = response.headers["retry-after"];
        resolve({ status: response.statusCode ?? null, answer: beginning.toString("utf8"), retryAfter });
      };
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes < limits.answerBytes) return;
        finish();
        // Ends the connection, because the rest of the answer may be endless.
        sent.destroy();
      });
      response.on("end", () => {
        finish();
        const { socket } = sent;
        const opened = socket === null ? undefined : openedAt.get(socket);
        // An old connection is not reused, because the host name may have another address by now.
        if (opened === undefined || performance.now() - opened > limits.connectionAgeMs) socket?.destroy();
      });
      response.on("error", reject);
      response.on("aborted", () => reject(new Error("the answer broke off")));
    });
    sent.end(body);
  });
}

function built<T>(build: () => T): T {
  try {
    return build();
  } catch (cause) {
    throw new NotBuilt(`the request could not be built: ${reasonOf(cause)}`, { cause });
  }
}

/** Checks the address to which the socket connects, so that DNS rebinding cannot replace a checked address. */
function vettedLookup(policy: UrlPolicy, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    const refuse = (error: Error): void => callback(error, "", 4);
    resolve(hostname).then((addresses) => {
      const fault = addressesFault(addresses, policy);
      const first = addresses[0];
      if (fault !== undefined || first === undefined) {
        return refuse(new Error(`receiver not allowed: ${fault ?? "no address"}`));
      }
      if (options.all === true) return callback(null, [...addresses]);
      return callback(null, first.address, first.family);
    }, refuse);
  };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? `${error.code}: ${error.message}` : error.message;
}
