/** A server between a client and the service, which refuses the first request and loses the answer of the second one. */
import { once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { baseUrl } from "../harness/client.ts";

export interface UnreliableGateway {
  readonly url: string;
  /** The value of this header in each request that has arrived. */
  headers(name: string): readonly (string | string[] | undefined)[];
}

export async function startUnreliableGateway(): Promise<UnreliableGateway> {
  const requests: NodeJS.Dict<string | string[]>[] = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const count = requests.push(request.headers);
    if (count === 1) return response.writeHead(503, { "Retry-After": "1" }).end();
    const { authorization = "", "content-type": type = "", "idempotency-key": key = "" } = request.headers;
    const headers = { Authorization: authorization, "Content-Type": type, "Idempotency-Key": String(key) };
    const answer = await fetch(`${baseUrl()}${request.url}`, { method: request.method ?? "GET", headers, body });
    if (count === 2) return response.destroy();
    return response.writeHead(answer.status).end(await answer.text());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the gateway has no address");
  return { url: `http://127.0.0.1:${address.port}`, headers: (name) => requests.map((headers) => headers[name]) };
}
