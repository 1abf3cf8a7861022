/** Tests DNS look-ups with a name server of the test. A silent name server may delay only the look-ups of its own names. */
import { createHook } from "node:async_hooks";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as limits from "#shared/limits.ts";
import { createResolver, LookupFailed, NoAddress, type Resolve } from "#shared/outbound/dns.ts";
import { type Exchange, post } from "#shared/outbound/post.ts";
import { closeAfterEach, http } from "../harness/listening.ts";

closeAfterEach();
let server: NameServer;
beforeEach(async () => {
  server = await startNameServer();
});
afterEach(() => server.stop());

/** Number of look-ups in threads of libuv. It must stay 0: libuv has only four threads, so slow look-ups would block other work. */
let threads = 0;
const counter = createHook({
  init(_id, type) {
    if (type === "GETADDRINFOREQWRAP") threads++;
  },
});
beforeAll(() => counter.enable());
afterAll(() => counter.disable());

/** Maximum milliseconds of a look-up, far fewer than in the service, so that the tests are short. */
const LOOKUP_MS = 400;
let clock = 0;
const resolver = (more: object = {}): Resolve =>
  createResolver({ servers: [server.address], lookupMs: LOOKUP_MS, now: () => clock, ...more });
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: unknown) => error,
  );

describe("a name", () => {
  test("resolves to its addresses, IPv4 first, in any letter case and with or without a trailing dot", async () => {
    server.answer = () => ({ addresses: ["2001:db8::1", "192.0.2.1", "192.0.2.2"] });
    const resolve = resolver();
    const expected = [
      { address: "192.0.2.1", family: 4 },
      { address: "192.0.2.2", family: 4 },
      { address: "2001:db8::1", family: 6 },
    ];
    for (const name of ["a.test", "A.TEST.", "a.test"]) expect(await resolve(name)).toEqual(expected);
    expect(server.questions.toSorted()).toEqual(["A a.test", "AAAA a.test"]);
  });

  test("resolves to at most 64 addresses", async () => {
    server.answer = () => ({ addresses: Array.from({ length: 70 }, (_, i) => `192.0.2.${i + 1}`) });
    expect(await resolver()("a.test")).toHaveLength(64);
  });

  test("is looked up once for concurrent requests", async () => {
    server.answer = () => ({ addresses: ["192.0.2.1"], ttl: 0 });
    const resolve = resolver();
    await Promise.all(Array.from({ length: 50 }, () => resolve("a.test")));
    expect(server.questions.toSorted()).toEqual(["A a.test", "AAAA a.test"]);
  });

  test("is cached for its TTL, at most half a minute", async () => {
    for (const [ttl, keptMs] of [
      [0, 0],
      [7, 7_000],
      [86_400, limits.nameKeptMs],
    ] as const) {
      server.answer = () => ({ addresses: ["192.0.2.1"], ttl });
      server.questions.length = 0;
      const resolve = resolver();
      clock = 1_000;
      await resolve("a.test");
      clock += Math.max(0, keptMs - 1);
      await resolve("a.test");
      expect(server.questions).toHaveLength(keptMs === 0 ? 4 : 2);
      clock += 1;
      await resolve("a.test");
      expect(server.questions).toHaveLength(keptMs === 0 ? 6 : 4);
    }
  });

  test("is evicted from a full cache, the oldest first", async () => {
    server.answer = () => ({ addresses: ["192.0.2.1"] });
    // The time limit is long, because the test makes about a thousand look-ups, and the machine may be busy.
    const resolve = resolver({ lookupMs: 10_000 });
    for (let i = 0; i <= limits.namesKept; i++) await resolve(`n${i}.test`);
    server.questions.length = 0;
    await resolve("n1.test");
    expect(server.questions).toEqual([]);
    await resolve("n0.test");
    expect(server.questions).toHaveLength(2);
  });

  test.each([
    ["no such name", () => "NXDOMAIN" as const],
    ["a name without addresses", () => ({ addresses: [] })],
  ])("that the server reports as %s fails with NoAddress", async (_, answer) => {
    server.answer = answer;
    expect(await failure(resolver()("a.test"))).toBeInstanceOf(NoAddress);
  });

  test.each(["silence", "SERVFAIL", "REFUSED"] as const)("that gets %s fails with LookupFailed", async (answer) => {
    server.answer = () => answer;
    expect(await failure(resolver()("a.test"))).toBeInstanceOf(LookupFailed);
    // Without the answer about IPv6, the service cannot know whether the name has an address.
    server.answer = (_, type) => (type === "A" ? "NXDOMAIN" : answer);
    expect(await failure(resolver()("b.test"))).toBeInstanceOf(LookupFailed);
    server.answer = (_, type) => (type === "A" ? { addresses: ["192.0.2.1"] } : answer);
    expect(await resolver()("c.test")).toEqual([{ address: "192.0.2.1", family: 4 }]);
  });

  test("whose look-up failed is looked up again after five seconds", async () => {
    server.answer = () => "SERVFAIL";
    const resolve = resolver();
    await failure(resolve("a.test"));
    server.answer = () => ({ addresses: ["192.0.2.1"] });
    clock += limits.noNameKeptMs - 1;
    expect(await failure(resolve("a.test"))).toBeInstanceOf(LookupFailed);
    clock += 1;
    expect(await resolve("a.test")).toHaveLength(1);
  });

  test("without an answer counts towards a limit of look-ups, but forty such names leave room for other names", async () => {
    server.answer = (name) => (name.startsWith("silent") ? "silence" : { addresses: ["192.0.2.1"] });
    const resolve = resolver();
    const silent = Array.from({ length: limits.webhooksPerCompany }, (_, i) => failure(resolve(`silent${i}.test`)));
    expect(await resolve("other.test")).toHaveLength(1);
    for (const error of await Promise.all(silent)) expect(error).toBeInstanceOf(LookupFailed);
    const many = Array.from({ length: limits.lookupsAtOnce }, (_, i) => failure(resolve(`silent-${i}.test`)));
    server.questions.length = 0;
    // The error message must name the limit, and must not blame a name server.
    expect(await failure(resolve("one-more.test"))).toMatchObject({
      name: "LookupFailed",
      message: `one-more.test was not looked up: ${limits.lookupsAtOnce} other look-ups are in progress`,
    });
    expect(server.questions).not.toContain("A one-more.test");
    await Promise.all(many);
    clock += limits.noNameKeptMs;
    expect(await resolve("one-more.test")).toHaveLength(1);
  });

  test("from the hosts file or under localhost is resolved locally, only if the settings allow it", async () => {
    const hostsFile = join(mkdtempSync(join(tmpdir(), "canvassing-hosts-")), "hosts");
    const hosts = ["# 192.0.2.9 commented.test", "192.0.2.7\tlaptop.test Alias.test # mine", "2001:db8::7 alias.test"];
    writeFileSync(hostsFile, `${hosts.join("\n")}\n`);
    const resolve = resolver({ hostsFile });
    for (const name of ["localhost", "LOCALHOST.", "a.localhost"]) {
      expect((await resolve(name)).map(({ address }) => address)).toEqual(["127.0.0.1", "::1"]);
    }
    expect(await resolve("laptop.test")).toEqual([{ address: "192.0.2.7", family: 4 }]);
    expect(await resolve("ALIAS.test")).toHaveLength(2);
    expect(server.questions).toEqual([]);
    expect(await failure(resolve("commented.test"))).toBeInstanceOf(NoAddress);
    expect(await failure(resolver()("laptop.test"))).toBeInstanceOf(NoAddress);
    server.answer = () => ({ addresses: ["192.0.2.8"] });
    expect(await resolver({ hostsFile: `${hostsFile}-missing` })("other.test")).toMatchObject([{ family: 4 }]);
  });
});

const send = (url: string, resolve?: Resolve): Promise<Exchange> =>
  post({ url, body: "{}", headers: {} }, "local", resolve);

describe("a post", () => {
  test("occupies no libuv thread for its look-up", async () => {
    const before = threads;
    const receiver = await http((response) => void response.end());
    const port = new URL(receiver.url).port;
    server.answer = () => ({ addresses: ["127.0.0.1"] });
    expect(await send(`http://a.test:${port}/`, resolver())).toMatchObject({ status: 200 });
    // These two requests use the resolver of the deployed service.
    expect(await send(`http://localhost:${port}/`)).toMatchObject({ status: 200 });
    await send(`http://nothing.invalid:${port}/`);
    expect(threads - before).toBe(0);
  });

  test("counts as unsent if its look-up gets no answer or it has an invalid header, and otherwise as an attempt", async () => {
    const receiver = await http((response) => void response.end());
    const closed = await http(() => undefined);
    server.answer = (name) =>
      name === "silent.test" ? "silence" : name === "private.test" ? { addresses: ["10.0.0.1"] } : "NXDOMAIN";
    const resolve = resolver();
    expect(await send("http://silent.test/", resolve)).toMatchObject({ status: null, isUnsent: true });
    expect(await send("http://silent.test/", resolve)).toMatchObject({ error: expect.stringContaining("silent.test") });
    const header = { url: receiver.url, body: "{}", headers: { "X-Bad": "a\r\nb" } };
    const unsent = { status: null, isUnsent: true, error: expect.stringContaining("built") };
    expect(await post(header, "local")).toMatchObject(unsent);
    for (const url of ["http://nobody.test/", "http://private.test/", "http://10.0.0.1/", "http://127.0.0.1:1/"]) {
      const exchange = await send(url, resolve);
      expect(exchange.status).toBeNull();
      expect(exchange, url).not.toHaveProperty("isUnsent");
    }
    expect(receiver.count() + closed.count()).toBe(0);
  });

  test("counts as unsent if the process has no file descriptor left for a socket", async () => {
    const script = `
      import { openSync } from "node:fs";
      import { post } from "./shared/outbound/post.ts";
      const send = () => post({ url: "http://127.0.0.1:1/", body: "{}", headers: {} }, "local");
      const first = await send();
      try { for (;;) openSync("/dev/null", "r"); } catch {}
      console.log(JSON.stringify([first, await send()].map(({ error, isUnsent }) => [error.split(":")[0], isUnsent ?? false])));`;
    const command = `ulimit -n 256 && exec "$0" --input-type=module -e "$1"`;
    const child = spawn("sh", ["-c", command, process.execPath, script], { stdio: ["ignore", "pipe", "inherit"] });
    expect(JSON.parse(await text(child.stdout))).toEqual([
      ["ECONNREFUSED", false],
      ["EMFILE", true],
    ]);
  });

  test("is checked against the policy again although its name is cached", async () => {
    server.answer = () => ({ addresses: ["10.0.0.1"] });
    const resolve = resolver();
    for (let i = 0; i < 2; i++) expect((await send("http://a.test/", resolve)).error).toContain("10.0.0.1 is not");
    expect(server.questions).toHaveLength(2);
  });
});

/** `ttl` is in seconds. */
type NameAnswer = { readonly addresses: readonly string[]; readonly ttl?: number } | "silence" | keyof typeof codes;

interface NameServer {
  /** The address and port, in the form that `Resolver.setServers` accepts. */
  readonly address: string;
  /** The questions so far, for example `A x.test`. */
  readonly questions: string[];
  answer: (name: string, type: "A" | "AAAA") => NameAnswer;
  stop(): void;
}

const codes = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 } as const;
const AAAA = 28;
const HEADER_BYTES = 12;

async function startNameServer(): Promise<NameServer> {
  const socket = createSocket("udp4");
  const questions: string[] = [];
  const made: NameServer = {
    get address() {
      return `127.0.0.1:${socket.address().port}`;
    },
    questions,
    answer: () => "NXDOMAIN",
    stop: () => socket.close(),
  };
  socket.on("message", (message, peer) => {
    const { name, type, end } = questionOf(message);
    questions.push(`${type} ${name}`);
    const answer = made.answer(name, type);
    if (answer === "silence") return;
    const code = typeof answer === "string" ? codes[answer] : 0;
    const { addresses, ttl = 60 } = typeof answer === "string" ? { addresses: [] } : answer;
    const records = addresses
      .filter((address) => isIPv6(address) === (type === "AAAA"))
      .map((address) => recordOf(address, type, ttl));
    const head = Buffer.alloc(HEADER_BYTES);
    message.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180 | code, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    const reply = Buffer.concat([head, message.subarray(HEADER_BYTES, end), ...records]);
    socket.send(reply, peer.port, peer.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return made;
}

function questionOf(message: Buffer): { name: string; type: "A" | "AAAA"; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = message.readUInt16BE(at + 1) === AAAA ? "AAAA" : "A";
  return { name: labels.join(".").toLowerCase(), type, end: at + 5 };
}

/** Encodes a DNS record. Instead of the host name, the record contains a pointer to the name in the question. */
function recordOf(address: string, type: "A" | "AAAA", ttl: number): Buffer {
  const data = type === "A" ? Buffer.from(address.split(".").map(Number)) : v6(address);
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  head.writeUInt16BE(type === "A" ? 1 : AAAA, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** Encodes an IPv6 address. The text may contain `::` once, and must not contain an IPv4 address. */
function v6(address: string): Buffer {
  const [before = "", after] = address.split("::");
  const groups = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const [first, last] = [groups(before), groups(after ?? "")];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  return Buffer.concat(all.map((group) => Buffer.from([group >> 8, group & 0xff])));
}
