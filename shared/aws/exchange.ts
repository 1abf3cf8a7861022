/** One POST and its answer over a connection that is kept: it ends in time, however the other side behaves. */
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";

export interface TimeLimits {
  readonly connectMs: number;
  /** Until the answer has come whole. */
  readonly answerMs: number;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

const CONNECTIONS = 50;
const kept = { keepAlive: true, maxSockets: CONNECTIONS } as const;
let agents: { readonly http: HttpAgent; readonly https: HttpsAgent } | undefined;

/** Throws where no whole answer comes, whatever the request may have done. */
export async function exchange(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  limits: TimeLimits,
): Promise<Reply> {
  const parts: Buffer[] = [];
  const status = await answered(url, headers, body, limits, parts);
  // A connection that is kept keeps its last request and answer, with all that these refer to.
  return { status, body: Buffer.concat(parts.splice(0)).toString() };
}

/** Gives the status when the answer has come whole. */
function answered(
  { protocol, hostname, port, pathname: path }: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  { connectMs, answerMs }: TimeLimits,
  parts: Buffer[],
): Promise<number> {
  agents ??= { http: new HttpAgent(kept), https: new HttpsAgent(kept) };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  // A URL writes the address of IPv6 in brackets, a connection takes it without.
  const options = { method: "POST", hostname: hostname.replace(/^\[|\]$/g, ""), port, path, headers };
  const request =
    protocol === "https:"
      ? httpsRequest({ ...options, agent: agents.https })
      : httpRequest({ ...options, agent: agents.http });
  const cutOff = (ms: number, what: string) =>
    setTimeout(() => request.destroy(new Error(`no ${what} within ${ms} ms`)), ms);
  const answering = cutOff(answerMs, "answer");
  request.once("socket", (socket) => {
    if (!socket.connecting) return;
    const connecting = cutOff(connectMs, "connection");
    const isOver = (): void => clearTimeout(connecting);
    socket.once("connect", isOver).once("close", isOver);
  });
  request.once("response", (response) => {
    response.on("data", (part: Buffer) => parts.push(part));
    response.on("error", reject);
    response.once("end", () => resolve(response.statusCode ?? 0));
  });
  request.on("error", reject);
  request.end(body);
  return promise.finally(() => clearTimeout(answering));
}
