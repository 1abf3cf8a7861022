/** Forwards requests that a simulated server has received to the server behind it. */
import { type IncomingMessage, request } from "node:http";

/** Sends the request with this body to the server at `to`, and returns the answer, whose body is not read yet. */
export function forwarded(to: string, from: IncomingMessage, body: string | Buffer): Promise<IncomingMessage> {
  const { url = "/", method, headers } = from;
  const { host: _, expect: __, "transfer-encoding": ___, ...kept } = headers;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const length = { "content-length": Buffer.byteLength(body) };
  request(new URL(url, to), { method, headers: { ...kept, ...length } }, resolve)
    .once("error", reject)
    .end(body);
  return promise;
}
