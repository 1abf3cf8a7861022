/** Tests that log lines have Lambda's JSON format and contain the expected fields. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { errorFields, log, withLogContext } from "#shared/log.ts";
import { logLine, replaceConsole } from "../../../infra/local/runtime/console.ts";

/** CloudWatch's maximum size of a log event in bytes. CloudWatch cuts off the rest of a larger event. */
const EVENT_BYTES = 256 * 1_024;

describe("Lambda's line", () => {
  const messageOf = (...values: unknown[]): unknown => JSON.parse(logLine("INFO", "id", values)).message;

  test("has time, level and id; a single value is the message, and a text stays text even if it is JSON", () => {
    expect(JSON.parse(logLine("WARN", "id", [{ event: "x" }]))).toEqual({
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: "WARN",
      requestId: "id",
      message: { event: "x" },
    });
    expect(messageOf('{"event":"x"}')).toBe('{"event":"x"}');
    expect(messageOf("%s of %d", "one", 2)).toBe("one of 2");
  });

  test("contains the fields of an error, alone or with a text", () => {
    const fields = { errorType: "RangeError", errorMessage: "too far", stackTrace: expect.arrayContaining([]) };
    expect(messageOf(new RangeError("too far"))).toEqual(fields);
    expect(JSON.parse(logLine("ERROR", "id", ["failed", new RangeError("too far")]))).toMatchObject(fields);
  });

  test("contains the text of a value that JSON cannot represent", () => {
    const round: { self?: unknown } = {};
    round.self = round;
    expect(messageOf(round)).toContain("[Circular *1]");
  });
});

describe("the service's log", () => {
  const own = { ...console };
  let lines: string[];
  let errors: string[];
  let output: string[];
  beforeEach(() => {
    lines = [];
    errors = [];
    output = [];
    vi.spyOn(process.stderr, "write").mockImplementation((text) => errors.push(String(text)) > 0);
    vi.spyOn(process.stdout, "write").mockImplementation((text) => output.push(String(text)) > 0);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    Object.assign(console, own);
  });

  function onLambda(least: Parameters<typeof replaceConsole>[0]): void {
    vi.stubEnv("AWS_LAMBDA_LOG_FORMAT", "JSON");
    replaceConsole(
      least,
      () => "id",
      (line) => lines.push(line),
    );
  }

  test("puts event, context and fields into the message on Lambda, and lets Lambda filter the lines by level", async () => {
    onLambda("INFO");
    await withLogContext({ companyId: 7 }, async () => {
      log.debug("too much");
      log.info("said", { n: 1 });
      log.error("failed", errorFields(new Error("outer", { cause: new RangeError("inner") })));
    });
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: "INFO", requestId: "id", message: { event: "said", companyId: 7, n: 1 } },
      { level: "ERROR", message: { event: "failed", error: "Error", cause: "RangeError", causeMessage: "inner" } },
    ]);
  });

  test("never writes a line that CloudWatch would truncate", () => {
    onLambda("INFO");
    log.error("failed", errorFields(new Error("é".repeat(1_000_000), { cause: new Error("ü".repeat(1_000_000)) })));
    expect(lines).toHaveLength(1);
    expect(Buffer.byteLength(lines[0] ?? "")).toBeLessThan(EVENT_BYTES);
    expect(JSON.parse(lines[0] ?? "").message).toMatchObject({ event: "failed", error: "Error" });
  });

  test("writes the same line to standard error outside Lambda, because standard output is for the output of commands", () => {
    vi.stubEnv("LOG_LEVEL", "info");
    log.info("said", { n: 1 });
    expect(output).toEqual([]);
    expect(errors.map((text) => JSON.parse(text))).toMatchObject([{ level: "INFO", message: { event: "said", n: 1 } }]);
  });
});
