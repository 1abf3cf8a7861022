/** Tests that the faulty proxy cuts off and shortens each kind of answer. */
import { once } from "node:events";
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FaultyProxy, startFaultyProxy } from "./faulty-proxy.ts";

const TEXT = JSON.stringify({ name: "n".repeat(5_000) });
const kinds: Record<string, { headers: Record<string, string>; body: string | Buffer }> = {
  json: { headers: { "content-type": "application/json" }, body: TEXT },
  packed: { headers: { "content-type": "application/json", "content-encoding": "gzip" }, body: gzipSync(TEXT) },
  csv: { headers: { "content-type": "text/csv" }, body: TEXT },
};

const service = createServer((request, response) => {
  const { headers, body } = kinds[request.url?.split("/").at(-1) ?? ""] ?? { headers: {}, body: "" };
  response.writeHead(200, { ...headers, "content-length": Buffer.byteLength(body) }).end(body);
});
let proxy: FaultyProxy;
beforeAll(async () => {
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  const address = service.address();
  proxy = await startFaultyProxy(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
});
afterAll(() => {
  proxy.stop();
  service.close();
});

const read = async (kind: string): Promise<string> => (await fetch(`${proxy.url}/api/${kind}`)).text();

describe.each(Object.keys(kinds))("an answer of the kind %s", (kind) => {
  test("passes without a planned failure", async () => {
    expect(await read(kind)).toBe(TEXT);
  });

  test("is cut off, and the next one passes", async () => {
    proxy.fail(`GET /api/${kind}`, { cut: "answer", after: 10 });
    await expect(read(kind)).rejects.toThrow();
    expect(await read(kind)).toBe(TEXT);
  });

  test("is shortened", async () => {
    proxy.fail(`GET /api/${kind}`, { shorten: 10 });
    const shortened = await read(kind).catch(() => "");
    expect(shortened.length).toBeLessThanOrEqual(10);
  });
});
