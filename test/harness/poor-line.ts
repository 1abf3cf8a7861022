/** A poor line between a client and the local service, its bucket included: requests are cut, held up or answered by nobody. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request as open, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";

/** `cut`: after so many bytes of the body the connection breaks. */
export type Trouble =
  | { readonly cut: "request" | "answer"; readonly after: number }
  /** It is done, and nobody hears of it. */
  | { readonly lose: "answer" }
  | { readonly hold: "request" }
  /** In place of the service. */
  | { readonly answer: number }
  /** The beginning of the body, ended as if it were all. */
  | { readonly shorten: number };

export interface PoorLine {
  readonly url: string;
  /** What came over it, e.g. `PUT /uploads`. */
  readonly calls: readonly string[];
  /** The next requests that begin so, one trouble each. */
  trouble(call: string, ...troubles: readonly Trouble[]): void;
  /** Until so many of these have come. */
  came(call: string, count?: number): Promise<void>;
  stop(): void;
}

export async function startPoorLine(service: string): Promise<PoorLine> {
  /** The bucket's own address, as links name it. */
  let bucket = "";
  let url = "";
  const calls: string[] = [];
  const waiting: { call: string; trouble: Trouble }[] = [];
  const heard = new EventTarget();

  const server = createServer((request, response) => {
    response.on("error", () => undefined);
    handle(request, response).catch(() => response.destroy());
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "/";
    const isApi = /^\/(api|local)\//.test(path);
    // Of a bucket's path the part after the bucket says what it is.
    const call = `${request.method} ${isApi ? path : `/${path.split("/").slice(2).join("/")}`}`;
    calls.push(call);
    heard.dispatchEvent(new Event("call"));
    const at = waiting.findIndex((one) => call.startsWith(one.call));
    const [{ trouble } = { trouble: undefined }] = at === -1 ? [] : waiting.splice(at, 1);
    if (trouble === undefined) return relay(request, response, isApi);
    if ("hold" in trouble) return;
    if ("answer" in trouble) {
      request.resume();
      response.writeHead(trouble.answer).end();
    } else if ("cut" in trouble && trouble.cut === "request") await swallow(request, trouble.after);
    else await relay(request, response, isApi, trouble);
  }

  async function relay(request: IncomingMessage, response: ServerResponse, isApi: boolean, trouble?: Trouble) {
    const answer = await ask(isApi ? service : bucket, request);
    if (trouble !== undefined && "lose" in trouble) {
      await buffer(answer);
      return void request.socket.destroy();
    }
    const { "transfer-encoding": _, "content-length": length, connection: __, ...headers } = answer.headers;
    // Answers that are streamed hold no links, and are gzipped.
    const isJson = String(headers["content-type"]).includes("json") && headers["content-encoding"] === undefined;
    const body = isJson ? Buffer.from(overHere((await buffer(answer)).toString())) : undefined;
    const told = body?.length ?? length;
    const isShort = trouble !== undefined && "shorten" in trouble;
    response.writeHead(answer.statusCode ?? 502, {
      ...headers,
      ...(told !== undefined && !isShort && { "content-length": told }),
    });
    if (body !== undefined) response.end(body);
    else if (trouble === undefined) answer.pipe(response);
    else await begin(answer, response, trouble);
  }

  async function begin(answer: IncomingMessage, response: ServerResponse, trouble: Trouble): Promise<void> {
    let left = "shorten" in trouble ? trouble.shorten : "after" in trouble ? trouble.after : 0;
    for await (const chunk of answer) {
      const part = chunk.subarray(0, left);
      left -= part.length;
      await new Promise((resolve) => response.write(part, resolve));
      if (left === 0) break;
    }
    if ("shorten" in trouble) response.end();
    else response.destroy();
  }

  /** Links lead over this line, too. */
  function overHere(text: string): string {
    return text.replace(/(http:\/\/127\.0\.0\.1:\d+)(?=[^"]*X-Amz-Signature)/g, (origin) => {
      if (origin !== url) bucket = origin;
      return url;
    });
  }

  function ask(origin: string, request: IncomingMessage): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { expect: _, ...headers } = request.headers;
    const to = new URL(origin);
    const { hostname, port } = to;
    const sent = open({
      hostname,
      port,
      method: request.method,
      path: request.url,
      headers: { ...headers, host: to.host },
    });
    sent.once("response", resolve).once("error", reject);
    request.once("error", () => sent.destroy());
    request.pipe(sent);
    return promise;
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const count = (call: string): number => calls.filter((one) => one.startsWith(call)).length;
  return {
    url,
    calls,
    trouble: (call, ...troubles) => {
      waiting.push(...troubles.map((trouble) => ({ call, trouble })));
    },
    async came(call, wanted = 1) {
      const from = count(call);
      while (count(call) < from + wanted) await once(heard, "call");
    },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function swallow(request: IncomingMessage, after: number): Promise<void> {
  let got = 0;
  for await (const chunk of request) {
    got += chunk.length;
    if (got >= after) break;
  }
  request.socket.destroy();
}
