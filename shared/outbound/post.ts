/** One POST to a receiver: vetted address, one deadline for everything, a bounded answer, no redirects. */
import { Agent as HttpAgent, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { performance } from "node:perf_hooks";
import type { UrlPolicy } from "#shared/config.ts";
import { limits } from "#shared/limits.ts";
import { NotLookedUp, type Resolve } from "#shared/outbound/names.ts";
import { addressesFault, parseTarget, resolverFor } from "#shared/outbound/public-url.ts";

export interface Exchange {
  /** Status of the answer, or null when there was none. */
  readonly status: number | null;
  readonly error: string | null;
  /** Beginning of the answer's body, as text. */
  readonly answer: string;
  readonly retryAfter: string | undefined;
  readonly latencyMs: number;
  /** The request never left: the fault is ours and tells nothing about the receiver. */
  readonly isUnsent?: true;
}

export interface Post {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Never throws: what goes wrong is the receiver's answer, or it never left. */
export async function post(
  { url, body, headers }: Post,
  policy: UrlPolicy,
  resolve: Resolve = resolverFor(policy),
): Promise<Exchange> {
  const started = performance.now();
  const signal = AbortSignal.timeout(limits.exchangeMs);
  let isLookingUp = false;
  async function lookedUp(host: string): ReturnType<Resolve> {
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
      lookup: vettedLookup(policy, lookedUp),
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

/** A request that Node's client refuses to build. */
class NotBuilt extends Error {
  override readonly name = "NotBuilt";
}

/** What this machine answers where it has no socket, no port or no way out. What the receiver, or the way to it, answers is not among them. */
const ownFaults = new Set([
  ...["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EACCES", "EPERM"],
  ...["EADDRNOTAVAIL", "EADDRINUSE", "EAFNOSUPPORT", "ENETUNREACH", "ENETDOWN"],
]);

function neverLeft(error: unknown): boolean {
  if (error instanceof NotLookedUp || error instanceof NotBuilt) return true;
  // Every address of the name was tried.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(neverLeft);
  if (!(error instanceof Error && "code" in error && "syscall" in error)) return false;
  return error.syscall === "connect" && ownFaults.has(String(error.code));
}

type Answer = Pick<Exchange, "status" | "answer" | "retryAfter">;

/**
 * A connection stays open between exchanges that follow each other closely, for one URL: what a receiver says out of turn is nobody
 * else's answer. Its address was vetted when it was made. Not the global agents: those may follow the environment to a proxy, which
 * would look the name up by itself.
 */
const kept = { keepAlive: true, timeout: limits.connectionKeptMs, scheduling: "lifo" } as const;
const secure = { request: requestHttps, agent: forOneUrl(new HttpsAgent({ ...kept, maxCachedSessions: 0 })) };
const plain = { request: requestHttp, agent: forOneUrl(new HttpAgent(kept)) };

type Named = Parameters<HttpAgent["getName"]>[0] & { readonly keptFor?: string };

/** Of requests that name what their connections are kept for. */
function forOneUrl<A extends HttpAgent>(agent: A): A {
  const nameOf = agent.getName.bind(agent);
  agent.getName = (options?: Named) => `${nameOf(options)} ${options?.keptFor ?? ""}`;
  return agent;
}

/** When each connection was made. */
const made = new WeakMap<Socket, number>();

interface Sending {
  readonly target: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly lookup: LookupFunction;
  readonly signal: AbortSignal;
}

/** A kept connection that ended before it told anything: its receiver had closed it when the request left. */
class Stale extends Error {}

async function send(sending: Sending): Promise<Answer> {
  try {
    return await sendOnce(sending, true);
  } catch (error) {
    if (error instanceof Stale) return sendOnce(sending, false);
    throw error;
  }
}

const isEnd = (error: Error): boolean => "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");

function sendOnce({ target, body, headers, lookup, signal }: Sending, mayBeKept: boolean): Promise<Answer> {
  const { request, agent } = target.protocol === "https:" ? secure : plain;
  const options = {
    method: "POST",
    headers: { ...headers, "Content-Length": Buffer.byteLength(body), "Accept-Encoding": "identity" },
    lookup,
    agent: mayBeKept && agent,
    keptFor: target.href,
    signal,
  };
  return new Promise((resolve, reject) => {
    const sent = built(() => request(target, options));
    let heardBefore = 0;
    sent.on("socket", (socket) => {
      heardBefore = sent.reusedSocket ? socket.bytesRead : 0;
      if (!sent.reusedSocket) made.set(socket, performance.now());
    });
    const isSilent = (): boolean => sent.socket?.bytesRead === heardBefore;
    sent.on("error", (error) => reject(sent.reusedSocket && isSilent() && isEnd(error) ? new Stale() : error));
    // Whatever way a connection ends, and be it one to another protocol: the exchange is over then.
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
        // Enough is known: the rest of an endless answer is not read.
        sent.destroy();
      });
      response.on("end", () => {
        finish();
        const { socket } = sent;
        // A name may have another address by now.
        if (socket !== null && performance.now() - (made.get(socket) ?? 0) > limits.connectionAgeMs) socket.destroy();
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

/** The socket connects to an address that was looked at, and to no other: a name that changes its mind gains nothing. */
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
