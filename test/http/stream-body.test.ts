/** Tests that a streamed body arrives complete at any size, encoding and speed of the reader, and that a fault breaks the connection. */
import { syncBuiltinESMExports } from "node:module";
import { Writable } from "node:stream";
import timers from "node:timers";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { requireTime } from "#shared/deadline.ts";
import { begun, jsonArray, streamText, writeAnswer } from "#shared/http/streaming.ts";
import * as limits from "#shared/limits.ts";
import { MapPin } from "#shared/prospects/list/pins.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";

/** Simulates the stream that Lambda's runtime passes to a function with a streamed answer. */
class HttpStream extends Writable {
  readonly chunks: Buffer[] = [];
  head: unknown;
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.chunks.push(chunk);
    setImmediate(done);
  }
  setContentType(): void {}
}
class Opened extends HttpStream {
  static from(stream: Writable, metadata: Record<string, unknown>): HttpStream {
    if (!(stream instanceof HttpStream)) throw new Error("not the stream that was given");
    stream.head = metadata;
    return stream;
  }
}
/** The handler of the endpoint that the test has created last. */
let handler: Parameters<typeof awslambda.streamifyResponse>[0] = async () => undefined;
const streamifyResponse = (handle: typeof handler): object => {
  handler = handle;
  return {};
};
beforeAll(() => {
  Object.assign(globalThis, { awslambda: { HttpResponseStream: Opened, streamifyResponse } });
});

const COUNT = 100_000;
const pin = (i: number): MapPin => ({ id: i + 1, lat: 39 + i / 1e6, lng: -105 + i / 1e6, statusColor: "#9CA3AF" });
function* pins(count = COUNT) {
  for (let i = 0; i < count; i++) yield pin(i);
}
const text = ({ chunks }: HttpStream): string => Buffer.concat(chunks).toString();
const gzip = { "Content-Encoding": "gzip" };

/** Sends an answer with these parts. Returns its whole text, which is decompressed if the headers are `gzip`. */
async function sent(pieces: Parameters<typeof writeAnswer>[1]["pieces"], headers = {}): Promise<string> {
  const stream = new HttpStream();
  await writeAnswer(stream, { statusCode: 200, headers, pieces });
  expect(stream.head).toEqual({ statusCode: 200, headers });
  const body = Buffer.concat(stream.chunks);
  return (headers === gzip ? gunzipSync(body) : body).toString();
}

test("100 000 pins arrive complete, plain and gzipped", async () => {
  const expected = JSON.stringify([...pins()]);
  expect(expected.length).toBeGreaterThan(6_000_000);
  for (const headers of [{}, gzip]) {
    expect((await sent(await begun(jsonArray(MapPin, pins())), headers)) === expected).toBe(true);
  }
});

test.each([{}, gzip])("parts that share memory arrive with the bytes that each part had (%j)", async (headers) => {
  function* sharing() {
    const bytes = Buffer.alloc(100_000);
    for (const letter of "abcdefgh") yield bytes.fill(letter);
    yield "";
  }
  expect(await sent(sharing(), headers)).toBe([..."abcdefgh"].map((letter) => letter.repeat(100_000)).join(""));
});

/** Calls a streaming endpoint, whose function has `remainingMs()` milliseconds until its time-out. Returns what the endpoint has sent. */
async function received(work: () => Promise<Iterable<string>>, remainingMs: () => number) {
  vi.stubEnv("TABLE_NAME", "t");
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });
  streamText({ summary: "", allow: "everyone", scope: "none", status: 200, response: MapPin }, work);
  const stream = new HttpStream();
  const event = proxyEvent({ companyId: "1", userId: "2", rights: "sales" });
  await handler(event, stream, { ...lambdaContext, getRemainingTimeInMillis: remainingMs });
  return { head: stream.head, text: text(stream) };
}

test("an answer whose first byte is late becomes a 503, and an answer that has begun has no deadline", async () => {
  const afterFiveChecks = (pieces: () => Generator<string>) => {
    let remainingMs = limits.streamBodyMs + 25_000;
    return received(
      async () => pieces(),
      () => (remainingMs -= 10_000),
    );
  };
  const late = await afterFiveChecks(function* () {
    for (let parts = 0; parts < 5; parts++) requireTime();
    yield "late";
  });
  expect(late.head).toMatchObject({ statusCode: 503, headers: { "Retry-After": "1" } });
  expect(JSON.parse(late.text)).toMatchObject({ code: "unavailable", detail: "The request took too long." });
  const begins = await afterFiveChecks(function* () {
    yield "begins, ";
    for (let parts = 0; parts < 5; parts++) requireTime();
    yield "continues";
  });
  expect(begins).toMatchObject({ head: { statusCode: 200 }, text: "begins, continues" });
});

test("a gzipped answer of no parts is an empty gzip file", async () => {
  expect(await sent([], gzip)).toBe("");
});

test.each([0, 1, 2])("%i items are an array", async (count) => {
  expect(JSON.parse(await sent(jsonArray(MapPin, pins(count))))).toEqual([...pins(count)]);
});

test("a fault midway destroys the stream and is thrown; the received part is not valid JSON", async () => {
  async function* breaking() {
    yield* pins(5_000);
    throw new Error("the table went away");
  }
  const stream = new HttpStream();
  const pieces = await begun(jsonArray(MapPin, breaking()));
  await expect(writeAnswer(stream, { statusCode: 200, headers: {}, pieces })).rejects.toThrow("the table went away");
  expect(stream.destroyed).toBe(true);
  expect(stream.writableFinished).toBe(false);
  expect(stream.chunks.length).toBeGreaterThan(0);
  expect(() => JSON.parse(text(stream))).toThrow();
});

describe("a reader", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  /** A stream whose reader takes the first `most` parts, each after `afterMs` milliseconds, and then takes nothing more. */
  class Slow extends HttpStream {
    most = Number.POSITIVE_INFINITY;
    afterMs = 0;
    override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
      this.chunks.push(chunk);
      if (this.chunks.length <= this.most) setTimeout(done, this.afterMs);
    }
  }

  test.each([
    [0, 10],
    [0, 1_000_000],
    [3, 1_000_000],
    [15, 1_000_000],
  ])("that takes %i parts and then nothing for 10 s is dropped (%i bytes)", async (most, bytes) => {
    vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => void vi.restoreAllMocks());
    const stream = Object.assign(new Slow(), { most, afterMs: 5_000 });
    const ended = vi.fn<(reason: unknown) => void>();
    writeAnswer(stream, { statusCode: 200, headers: {}, pieces: ["x".repeat(bytes)] }).catch(ended);
    await vi.advanceTimersByTimeAsync(most * 5_000 + limits.readerMs - 1);
    expect([ended.mock.calls.length, stream.destroyed]).toEqual([0, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledWith(expect.objectContaining({ message: "the reader takes no bytes" }));
    expect(stream.destroyed).toBe(true);
  });

  test("that takes a part every 9 s gets all parts, although each piece takes a minute to compute", async () => {
    async function* late() {
      for (const letter of "abc") {
        await new Promise((resolve) => setTimeout(resolve, 60_000));
        yield letter.repeat(300_000);
      }
    }
    const stream = Object.assign(new Slow(), { afterMs: 9_000 });
    const written = writeAnswer(stream, { statusCode: 200, headers: {}, pieces: late() });
    await vi.advanceTimersByTimeAsync(600_000);
    await written;
    expect(Buffer.concat(stream.chunks).length).toBe(900_000);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("a fault before the first part of the body is thrown before any byte is written", async () => {
  await expect(begun(jsonArray(MapPin, [{ ...pin(1), statusColor: "red" }]))).rejects.toThrow("contract");
});

test("a request without a first byte is answered with 503 when only the time of the body is left", async () => {
  const timer = vi.spyOn(timers, "setTimeout");
  syncBuiltinESMExports();
  onTestFinished(syncBuiltinESMExports);
  const { head } = await received(
    () => new Promise(() => undefined),
    () => limits.streamBodyMs + 7,
  );
  expect(timer).toHaveBeenCalledWith(expect.any(Function), 7);
  expect(head).toMatchObject({ statusCode: 503 });
});
