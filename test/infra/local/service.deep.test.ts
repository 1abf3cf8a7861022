/** Tests the local runtime with a small template: the gateway and its limits, the event sources, and a restart. */
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { request as requestHttp } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { fixtureTemplate, getItem, putItem, sendTo, startFixture, TIMEOUT_SECONDS, takeFrom } from "./fixture.ts";

const service = await startFixture();
afterAll(() => service.stop());

const Event = z.looseObject({
  path: z.string(),
  pathParameters: z.nullable(z.record(z.string(), z.string())),
  queryStringParameters: z.nullable(z.record(z.string(), z.string())),
  multiValueQueryStringParameters: z.nullable(z.record(z.string(), z.array(z.string()))),
  multiValueHeaders: z.record(z.string(), z.array(z.string())),
  requestContext: z.looseObject({ requestId: z.string(), resourcePath: z.string(), path: z.string() }),
  body: z.nullable(z.string()),
  remaining: z.number(),
});

async function echoed(target: string, init?: RequestInit): Promise<z.infer<typeof Event>> {
  const answer = await fetch(`${service.url}${target}`, init);
  expect(answer.status).toBe(200);
  return Event.parse(await answer.json());
}

/** Sends a text that may be invalid HTTP. Resolves with everything that the service sends until it closes the connection. */
function raw(text: string, end = false): Promise<string> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => {
      socket.write(text);
      if (end) socket.end();
    });
    socket.on("data", (data) => {
      answer += data.toString();
    });
    socket.on("close", () => resolve(answer)).on("error", reject);
  });
}

/** Sends header lines that `fetch` would change, and returns the event that the function gets. */
async function eventOf(...lines: readonly string[]): Promise<z.infer<typeof Event>> {
  const head = ["GET /things/1 HTTP/1.1", "Host: a", ...lines, "Connection: close"];
  const answer = await raw(`${head.join("\r\n")}\r\n\r\n`);
  return Event.parse(JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1)));
}

describe("the gateway", () => {
  test("gives a function the proxy event", async () => {
    const event = await echoed("/things/a%20b%2Fc?x=1&x=2&y=%C3%A9&z=a+b&__proto__=p", { method: "POST", body: "hi" });
    expect(event).toMatchObject({
      path: "/things/a%20b%2Fc",
      pathParameters: { id: "a b/c" },
      multiValueQueryStringParameters: { x: ["1", "2"], y: ["é"], z: ["a b"] },
      body: "hi",
      requestContext: { resourcePath: "/things/{id}", path: "/things/a%20b%2Fc" },
    });
    expect(event.queryStringParameters?.x).toBe("2");
    expect(event.remaining).toBeGreaterThan(0);
    expect(event.remaining).toBeLessThanOrEqual(TIMEOUT_SECONDS * 1_000);
  });

  test.each([
    ["an unknown path", "GET", "/nowhere", 404, "MISSING_AUTHENTICATION_TOKEN"],
    ["an unknown verb of a path", "POST", "/streamed", 404, "MISSING_AUTHENTICATION_TOKEN"],
    ["a slash at the end", "GET", "/things/1/", 404, "MISSING_AUTHENTICATION_TOKEN"],
    ["a broken escape in the path", "GET", "/things/%zz", 400, "BAD_REQUEST_PARAMETERS"],
    ["bytes that are not UTF-8", "GET", "/things/%ff", 400, "BAD_REQUEST_PARAMETERS"],
    ["a function that throws", "GET", "/things/1?mode=throw", 502, "INTEGRATION_FAILURE"],
    ["a function that exits", "GET", "/things/1?mode=exit", 502, "INTEGRATION_FAILURE"],
    ["a function that runs out of time", "GET", "/short", 502, "INTEGRATION_FAILURE"],
    ["a malformed answer", "GET", "/things/1?mode=malformed", 502, "INTEGRATION_FAILURE"],
    ["an answer above 6 MB", "GET", "/things/1?mode=large", 502, "INTEGRATION_FAILURE"],
    ["an answer above 6 MB with its escapes", "GET", "/things/1?mode=escaped", 502, "INTEGRATION_FAILURE"],
    ["a header with a line break", "GET", "/things/1?mode=header", 502, "INTEGRATION_FAILURE"],
    ["a stream that throws before its head", "GET", "/streamed?mode=throw", 502, "INTEGRATION_FAILURE"],
  ])("answers %s itself", async (_, method, target, status, type) => {
    const answer = await fetch(`${service.url}${target}`, { method });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(await answer.json()).toEqual({ type, id: answer.headers.get("x-request-id") });
    expect(await fetch(`${service.url}/things/1`).then(({ ok }) => ok)).toBe(true);
  });

  test("answers a preflight without a function if the request has no content type or that of JSON", async () => {
    const answer = await fetch(`${service.url}/limited`, { method: "OPTIONS" });
    expect([answer.status, answer.headers.get("vary")]).toEqual([204, "Origin"]);
    expect(answer.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
    const headers = { "Content-Type": "text/x" };
    expect((await fetch(`${service.url}/limited`, { method: "OPTIONS", headers })).status).toBe(415);
  });

  test("limits a method that has its own throttle, and no other method", async () => {
    const statuses = await Promise.all(
      [1, 2, 3].map(() => fetch(`${service.url}/limited`).then(({ status }) => status)),
    );
    expect(statuses.toSorted()).toEqual([200, 200, 429]);
    expect(await fetch(`${service.url}/things/1`).then(({ ok }) => ok)).toBe(true);
  });

  /** Returns the content encoding and the decoded body of an answer. It does not use `fetch`, which would hide a wrong encoding. */
  function encodingOf(target: string, acceptEncoding: string): Promise<[string | undefined, string]> {
    return new Promise((resolve, reject) => {
      const headers = { "Accept-Encoding": acceptEncoding };
      requestHttp(`${service.url}${target}`, { headers }, async (response) => {
        const bytes = await buffer(response);
        const encoding = response.headers["content-encoding"];
        resolve([encoding, (encoding === "gzip" ? gunzipSync(bytes) : bytes).toString()]);
      })
        .on("error", reject)
        .end();
    });
  }

  test("compresses a buffered answer of at least the minimum size if the client accepts the coding", async () => {
    const long = `/things/1?text=${"a".repeat(1_000)}`;
    const [encoding, text] = await encodingOf(long, "br, gzip;q=0.5");
    expect(encoding).toBe("gzip");
    expect(Event.parse(JSON.parse(text)).path).toBe("/things/1");
    const plain = [
      encodingOf(long, "*"),
      encodingOf(long, "identity"),
      encodingOf(long, "gzip;q=0"),
      encodingOf("/nowhere", "gzip"),
      encodingOf("/streamed", "gzip"),
    ];
    for (const [other] of await Promise.all(plain)) expect(other).toBeUndefined();
    const encodedByFunction = await encodingOf("/things/1?mode=encoded", "gzip");
    expect(encodedByFunction).toEqual(["identity", "a".repeat(2_000)]);
  });

  test.each([
    ["POST", "/things/1"],
    // This method has an integration that answers without calling a function. The gateway must check the size of the body first.
    ["OPTIONS", "/limited"],
  ])("refuses a body above 10 MB before the integration of %s %s", async (method, path) => {
    const failures = service.failures();
    const status = await new Promise((resolve, reject) => {
      const body = Buffer.alloc(11 * 1024 * 1024);
      // Node.js sends no Content-Length with the body of an OPTIONS request, so the test sets it.
      const headers = { "Content-Length": body.length };
      const sent = requestHttp(`${service.url}${path}`, { method, headers }, ({ statusCode }) => resolve(statusCode));
      sent.on("error", reject).end(body);
    });
    expect(status).toBe(413);
    expect(service.failures()).toBe(failures);
  });

  test.each([
    ["garbage", "\x16\x03\x01\x02\r\n\r\n", "400"],
    ["no host", "GET /things/1 HTTP/1.1\r\nConnection: close\r\n\r\n", "400"],
    [
      "a target in absolute form",
      "GET http://any.test/things/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "200",
    ],
    ["an asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404"],
    ["two lengths", "POST /things/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", "400"],
    ["megabyte headers", `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(2_000_000)}\r\n\r\n`, "413"],
    [
      "a control character in a header",
      "GET /guarded HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\u0001\r\n\r\n",
      "400",
    ],
    ["half a body", "POST /things/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", "400", true],
  ])("survives %s", async (_, text, status, end = false) => {
    // The service closes the connection early, so the client may see a connection reset instead of the expected status.
    const answer = await raw(text, end).catch(() => `HTTP/1.1 ${status} `);
    expect(answer.split(" ")[1] ?? "").toBe(status);
    expect(await fetch(`${service.url}/things/1`).then(({ ok }) => ok)).toBe(true);
  });

  test("passes on query parameters with the names `__proto__` and `constructor`", async () => {
    const text = await fetch(`${service.url}/things/1?__proto__=p&constructor=c`).then((answer) => answer.text());
    expect(text).toContain('"queryStringParameters":{"__proto__":"p","constructor":"c"}');
  });

  test.each([
    ["renames", ["Authorization", "Connection", "Content-MD5", "Date", "Max-Forwards", "Server", "User-Agent"], true],
    ["renames, in any case,", ["WWW-Authenticate", "www-authenticate"], true],
    ["drops", ["Expect", "Host", "Proxy-Authenticate", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Via"], false],
  ])("%s a function's headers that belong to the gateway: %j", async (_, names, isRenamed) => {
    for (const name of names) {
      const init = { method: "POST", body: JSON.stringify({ [name]: "of the function", "X-Own": "kept" }) };
      const answer = await fetch(`${service.url}/things/1?mode=headers`, init);
      expect([answer.status, answer.headers.get("x-own")], name).toEqual([200, "kept"]);
      expect(answer.headers.get(name), name).not.toBe("of the function");
      expect(answer.headers.get(`x-amzn-Remapped-${name}`), name).toBe(isRenamed ? "of the function" : null);
    }
  });

  test("renames and drops the same headers in streamed answers", async () => {
    const answer = await fetch(`${service.url}/streamed?mode=headers`);
    await answer.text();
    const seen = ["www-authenticate", "via", "x-amzn-remapped-www-authenticate", "x-amzn-remapped-server"];
    expect(seen.map((name) => answer.headers.get(name))).toEqual([null, null, "Bearer", "b"]);
  });

  test("passes no headers of the connection to a function", async () => {
    const dropped =
      "Content-MD5 Expect Max-Forwards Proxy-Authenticate Server TE Trailer Upgrade WWW-Authenticate".split(" ");
    const kept = ["Age", "Authorization", "Date", "Pragma", "Range", "User-Agent", "Via"];
    const event = await eventOf(...[...dropped, ...kept].map((name) => `${name}: a`));
    const own = /^X-(?:Forwarded|Amzn)/;
    const handed = Object.keys(event.multiValueHeaders).filter((name) => !own.test(name));
    expect(handed.toSorted()).toEqual([...kept, "Host"].toSorted());
  });

  test("keeps every value of a repeated header", async () => {
    expect((await eventOf("X-A: 1", "x-a: 2")).multiValueHeaders["X-A"]).toEqual(["1", "2"]);
  });
});

test.each([
  ["127.0.0.1:3000", 200],
  ["[::1]:3000", 200],
  ["localhost", 200],
  ["evil.example:3000", 403],
  ["localhost.evil.example", 403],
  ["127.0.0.1.evil.example", 403],
  ["not a host", 403],
])("with the header Host %s, the paths of the local service answer %i", async (host, status) => {
  const answer = await raw(`GET /local/outputs HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(answer.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
});

test.each([
  ["/local/queues", 200],
  ["/local/invocations", 200],
  ["/local/nowhere", 404],
  ["/local/oidc/.well-known/openid-configuration", 200],
  ["/things/1", 200],
])("the answer of %s has Server-Timing once", async (path, status) => {
  const answer = await fetch(`${service.url}${path}`);
  const timing = "read-units;dur=0, write-units;dur=0, requests;dur=0, rounds;dur=0";
  expect([answer.status, answer.headers.get("server-timing")]).toEqual([status, timing]);
});

describe("event sources", () => {
  test("a schedule calls its function at the start, and tells it that messages are lost, because the queues are new", async () => {
    expect(await takeFrom(service, "Seen", 1)).toEqual(['{"ticked":{"assume":"messages-lost"}}']);
  });

  test("a message that fails twice is a dead letter with its body, and its neighbour is consumed", async () => {
    await sendTo(service, "Work", "poison");
    await sendTo(service, "Work", "good");
    expect(await takeFrom(service, "Seen", 1)).toEqual(['{"consumed":"good","from":"aws:sqs"}']);
    expect(await takeFrom(service, "Dead", 1)).toEqual(["poison"]);
  });

  test("the failure destination gets the position of a bad record, and its neighbours are published", async () => {
    for (const name of ["one", "bad", "two"]) await putItem(service, name);
    const seen = (await takeFrom(service, "Seen", 2)).join();
    expect(seen).toContain("one");
    expect(seen).toContain("two");
    expect(JSON.parse((await takeFrom(service, "Failed", 1))[0] ?? "")).toMatchObject({
      requestContext: { condition: "RetryAttemptsExhausted", approximateInvokeCount: 2 },
      DDBStreamBatchInfo: { batchSize: 1, startSequenceNumber: "2", endSequenceNumber: "2" },
    });
  });
});

describe("a data directory", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "canvassing-test-"));

  test("keeps rows, stream positions and messages over a restart, and belongs to one service at a time", async () => {
    const first = await startFixture(directory);
    await putItem(first, "before");
    const before = await takeFrom(first, "Seen", 2);
    expect(before.toSorted()).toEqual(['{"published":["before"]}', '{"ticked":{"assume":"messages-lost"}}']);
    await expect(startFixture(directory)).rejects.toThrow(/^DATA_DIR: .* is in use by another running service/);
    await first.stop();
    const second = await startFixture(directory);
    expect(await getItem(second, "before")).toBe(true);
    await putItem(second, "after");
    // After the restart, the queue repeats the messages that the test has not deleted. The stream does not repeat its records.
    const seen = await takeFrom(second, "Seen", 4);
    const after = ['{"published":["after"]}', '{"ticked":{"assume":"messages-kept"}}'];
    expect(seen.toSorted()).toEqual([...before, ...after].toSorted());
    await second.stop();
  });

  test("is free for the next service while the last one still ends", async () => {
    const first = await startFixture(directory);
    await putItem(first, "waiting");
    const { hostname, port } = new URL(first.url);
    // The ending service waits some seconds for this unfinished request. Meanwhile, the next service starts.
    const unfinished = connect(Number(port), hostname);
    unfinished.on("error", () => undefined);
    await once(unfinished, "connect");
    unfinished.write("POST /things/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    const waits = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const ended = first.stop();
    const second = await startFixture(directory);
    expect(waits.mock.calls).toEqual([[`waiting for process ${process.pid}, which is ending, to release DATA_DIR`]]);
    waits.mockRestore();
    expect(await getItem(second, "waiting")).toBe(true);
    unfinished.destroy();
    await ended;
    await second.stop();
  });

  test("with another schema is refused, and the error names --fresh", async () => {
    const template = fixtureTemplate();
    const table = template.Resources.Table;
    if (table !== undefined) table.Properties.KeySchema = [{ AttributeName: "pk", KeyType: "HASH" }];
    await expect(startFixture(directory, template)).rejects.toThrow("--fresh");
  });
});
