/** A proxy in front of the local service and its S3 bucket. Tests plan failures of requests and answers. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { forwarded } from "./forwarded.ts";

/** `cut` breaks the connection after `after` bytes of the body of the request or the answer. `hold` means that the proxy never answers. */
type Failure =
  | { readonly cut: "request" | "answer"; readonly after: number }
  /** The service handles the request, but the client gets no answer. */
  | { readonly lose: "answer" }
  | { readonly hold: "request" }
  /** The proxy answers with this status itself. */
  | { readonly answer: number }
  /** Ends the connection normally after this many bytes of the answer. The client must notice that bytes are missing. */
  | { readonly shorten: number };

export async function startFaultyProxy(service: string) {
  /** The origin of the bucket. The proxy gets it from the presigned URLs in the service's answers. */
  let bucket = "";
  /**
   * The method and the path of each request so far, for example `PUT /uploads`. A path in the bucket does not contain the bucket's name.
   */
  const calls: string[] = [];
  const planned: { call: string; failure: Failure }[] = [];
  const events = new EventTarget();

  const { endpoint: url, stop } = await serveOnLoopback(handle);

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => undefined);
    const path = request.url ?? "/";
    const isApi = /^\/(api|local)\//.test(path);
    // The path of a bucket URL begins with the bucket's name. It is removed here, so that a test need not know it.
    const call = `${request.method} ${isApi ? path : `/${path.split("/").slice(2).join("/")}`}`;
    calls.push(call);
    events.dispatchEvent(new Event("call"));
    const at = planned.findIndex((one) => call.startsWith(one.call));
    const [{ failure } = { failure: undefined }] = at === -1 ? [] : planned.splice(at, 1);
    if (failure === undefined) return relay(request, response, isApi);
    if ("hold" in failure) return;
    if ("answer" in failure) {
      request.resume();
      response.writeHead(failure.answer).end();
    } else if ("cut" in failure && failure.cut === "request") await swallow(request, failure.after);
    else await relay(request, response, isApi, failure);
  }

  async function relay(request: IncomingMessage, response: ServerResponse, isApi: boolean, failure?: Failure) {
    const answer = await forwarded(isApi ? service : bucket, request, await buffer(request));
    if (failure !== undefined && "lose" in failure) {
      await buffer(answer);
      return void request.socket.destroy();
    }
    const { "transfer-encoding": _, "content-length": length, connection: __, ...headers } = answer.headers;
    // Only uncompressed JSON has presigned URLs, which the proxy replaces. It forwards all other answers as a stream.
    const isJson = String(headers["content-type"]).includes("json") && headers["content-encoding"] === undefined;
    const body = isJson ? Buffer.from(throughProxy((await buffer(answer)).toString())) : undefined;
    const contentLength = body?.length ?? length;
    const isShort = failure !== undefined && "shorten" in failure;
    response.writeHead(answer.statusCode ?? 502, {
      ...headers,
      ...(contentLength !== undefined && !isShort && { "content-length": contentLength }),
    });
    if (failure !== undefined) await begin(body === undefined ? answer : [body], response, failure);
    else if (body === undefined) answer.pipe(response);
    else response.end(body);
  }

  async function begin(
    answer: IncomingMessage | readonly Buffer[],
    response: ServerResponse,
    failure: Failure,
  ): Promise<void> {
    let left = "shorten" in failure ? failure.shorten : "after" in failure ? failure.after : 0;
    for await (const chunk of answer) {
      const part = chunk.subarray(0, left);
      left -= part.length;
      await new Promise((resolve) => response.write(part, resolve));
      if (left === 0) break;
    }
    if ("shorten" in failure) response.end();
    else response.destroy();
  }

  /** Makes presigned URLs name the proxy instead of the bucket, so that tests can also plan failures of uploads and downloads. */
  function throughProxy(text: string): string {
    return text.replace(/(http:\/\/127\.0\.0\.1:\d+)(?=[^"]*X-Amz-Signature)/g, (origin) => {
      if (origin !== url) bucket = origin;
      return url;
    });
  }

  const count = (call: string): number => calls.filter((one) => one.startsWith(call)).length;
  return {
    url,
    calls,
    /** Plans one failure for each of the next requests whose method and path begin with `call`. */
    fail: (call: string, ...failures: readonly Failure[]): void => {
      planned.push(...failures.map((failure) => ({ call, failure })));
    },
    async received(call: string, wanted = 1): Promise<void> {
      const from = count(call);
      while (count(call) < from + wanted) await once(events, "call");
    },
    stop,
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
