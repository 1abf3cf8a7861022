/** Tests that the service opens no connection for hostile webhook URLs, neither when a user saves them nor when it sends a delivery. */
import { createHook } from "node:async_hooks";
import { spawn } from "node:child_process";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer, isIPv6 } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, test } from "vitest";
import { ApiError } from "#shared/errors.ts";
import type { Resolve } from "#shared/outbound/dns.ts";
import { type Exchange, post } from "#shared/outbound/post.ts";
import { assertTarget, parseTarget } from "#shared/outbound/public-url.ts";
import { closeAfterEach, tcp } from "../harness/listening.ts";
import { hostileForms, hostileLiterals, hostileNames } from "./hostile-targets.ts";

closeAfterEach();

let received = 0;
/** Number of connections that the process has begun to open. */
let connects = 0;
const counter = createHook({
  init(_id, type) {
    if (type === "TCPCONNECTWRAP") connects++;
  },
}).enable();

/** Listens on every address of this machine. */
const listener = createServer((socket) => {
  received++;
  socket.on("error", () => undefined).end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}).listen(0, "::");
await once(listener, "listening");
const address = listener.address();
if (typeof address !== "object" || address === null) throw new Error("the listener has no port");
const { port } = address;
afterAll(() => {
  counter.disable();
  listener.close();
});

const at = (url: string): string => url.replaceAll("PORT", String(port));
const records = (addresses: readonly string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
const resolvesTo =
  (...addresses: string[]): Resolve =>
  async () =>
    records(addresses);
const unknown: Resolve = () => Promise.reject(new Error("ENOTFOUND"));

const request = (url: string) => ({ url: at(url), body: "{}", headers: { "Content-Type": "application/json" } });
const send = (url: string, resolve: Resolve): Promise<Exchange> => post(request(url), "public", resolve);

/** Returns the message with which the service refuses to save the URL. */
async function refusal(url: string, resolve: Resolve): Promise<string> {
  const error: unknown = await assertTarget(at(url), "public", resolve).catch((reason: unknown) => reason);
  if (!(error instanceof ApiError)) throw new Error(`${url} was not refused`);
  expect(error.code).toBe("validation_failed");
  return error.message;
}

async function expectNoConnection(act: () => Promise<unknown>): Promise<void> {
  const [before, beforeReceived] = [connects, received];
  await act();
  expect(connects - before).toBe(0);
  expect(received - beforeReceived).toBe(0);
}

test("the counters count one connection for one allowed post", async () => {
  const before = [connects, received];
  expect(await post(request("http://127.0.0.1:PORT/"), "local")).toMatchObject({ status: 200 });
  expect(await post(request("http://[::1]:PORT/"), "local")).toMatchObject({ status: 200 });
  expect([connects, received].map((count, i) => count - (before[i] ?? 0))).toEqual([2, 2]);
});

describe("when saved and when sent to", () => {
  test.each([...hostileForms, ...hostileLiterals])("%s is refused: %s", async (url, rule) => {
    await expectNoConnection(async () => {
      expect(await refusal(url, unknown)).toContain(rule);
      expect(await send(url, unknown)).toMatchObject({ status: null, error: expect.stringContaining(rule) });
    });
  });

  test.each(hostileNames)("%s, which resolves to %j, is refused: %s", async (url, addresses, rule) => {
    const resolve = resolvesTo(...addresses);
    await expectNoConnection(async () => {
      expect(await refusal(url, resolve)).toContain(rule);
      expect(await send(url, resolve)).toMatchObject({ status: null, error: expect.stringContaining(rule) });
    });
  });

  test("the lists contain at least 100 URLs", () => {
    expect(hostileForms.length + hostileLiterals.length + hostileNames.length).toBeGreaterThanOrEqual(100);
  });
});

describe("a name with changing answers", () => {
  test("that is public when saved and private when sent to gets no connection", async () => {
    let asked = 0;
    const rebinding: Resolve = async () => records([asked++ === 0 ? "93.184.216.34" : "127.0.0.1"]);
    await expectNoConnection(async () => {
      await assertTarget(at("https://rebind.example:PORT/"), "public", rebinding);
      const exchange = await send("https://rebind.example:PORT/", rebinding);
      expect(exchange.error).toContain("127.0.0.1 is a loopback address");
    });
    expect(asked).toBe(2);
  });

  test("is looked up once for each exchange, which connects to the vetted address", async () => {
    let asked = 0;
    // A second look-up of the name would return a forbidden address.
    const rebinding: Resolve = async () => records([asked++ === 0 ? "127.0.0.1" : "10.0.0.1"]);
    const exchange = await post(request("http://rebind.example:PORT/"), "local", rebinding);
    expect(exchange.status).toBe(200);
    expect(asked).toBe(1);
  });

  test("without an address, or whose look-up fails, ends the attempt with an error", async () => {
    await expectNoConnection(async () => {
      expect((await send("https://none.example:PORT/", resolvesTo())).error).toContain("no address");
      expect((await send("https://none.example:PORT/", unknown)).error).toContain("ENOTFOUND");
    });
  });
});

test("a redirect to a private address is not followed", async () => {
  const location = `http://127.0.0.1:${port}/`;
  const redirecting = await tcp((socket) => {
    socket.end(`HTTP/1.1 307 Temporary Redirect\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`);
  });
  const before = received;
  const answer = await post(request(redirecting.url), "local");
  expect(answer.status).toBe(307);
  expect([redirecting.count(), received - before]).toEqual([1, 0]);
});

test("a post ignores the proxy in the environment variables and connects to the receiver itself", async () => {
  const before = received;
  const proxy = await tcp((socket) => void socket.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"));
  const variables = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
  const env = { ...process.env, NO_PROXY: "", no_proxy: "", NODE_USE_ENV_PROXY: "1" };
  const child = spawn(process.execPath, ["--input-type=module", "-e", ONE_POST, `http://127.0.0.1:${port}/`], {
    cwd: process.cwd(),
    env: { ...env, ...Object.fromEntries(variables.map((name) => [name, proxy.url])) },
  });
  const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(printed.trim(), complaints).toBe("200 502");
  expect(received - before).toBe(1);
  // The request without `post` went to the proxy, which shows that the proxy variables have an effect.
  expect(proxy.count()).toBe(1);
});

/** A program that sends two requests: one with `post`, and one with `get` of node:http, which obeys the proxy variables. */
const ONE_POST = `
import { get } from "node:http";
import { post } from "./shared/outbound/post.ts";
const url = process.argv[1];
const { status } = await post({ url, body: "{}", headers: {} }, "local");
get(url, (answer) => { console.log(status, answer.statusCode); answer.destroy(); });
`;

test.each([
  "https://example.com/hook?x=1",
  "https://93.184.216.34/",
  "https://[2606:4700:4700::1111]/",
  "https://example.com:8443/",
  "https://localhost.example.com/",
  "https://mylocal/",
  "https://internal.example.com./",
])("the policy `public` allows %s, which stays as written", (url) => {
  expect(parseTarget(url, "public").href).toBe(url);
});

test.each([
  ...["http://127.0.0.1:9/", "http://localhost:9/", "http://a.localhost.:9/"],
  ...["http://db.internal:9/", "http://[::1]:9/", "http://[::ffff:127.0.0.1]/"],
])("the policy `local` allows %s", (url) => {
  expect(parseTarget(url, "local")).toBeDefined();
});

const refused = ["http://10.0.0.1/", "http://169.254.169.254/", "http://0.0.0.0/", "ftp://127.0.0.1/"];
test.each(refused)("the policy `local` refuses %s", (url) => expect(() => parseTarget(url, "local")).toThrow());
