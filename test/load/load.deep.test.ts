/** Runs the load test for a short time with few companies. It asserts only counts, because times depend on the machine. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { root } from "../../infra/build/bundle.ts";

const Row = z.object({ operation: z.string(), sent: z.int(), ok: z.int(), throttled: z.int(), errors: z.int() });
const Result = z.object({
  holds: z.boolean(),
  phases: z.array(z.object({ title: z.string(), rows: z.array(Row), others: Row, large: Row, errors: z.string() })),
  settled: z.object({
    writes: z.int(),
    events: z.int(),
    lostWrites: z.int(),
    lostEvents: z.int(),
    doubledEvents: z.int(),
  }),
});

test("one company's excess is refused with 429, and the others lose nothing", async () => {
  // In the phase with `--noisy 20`, the large company sends about 40 requests a second, but only 4 a second are allowed.
  const options = "--companies 6 --large-reps 60 --large-prospects 300 --seconds 2 --noisy 20 --company-rate 4 --json";
  const { stdout } = await promisify(execFile)(process.execPath, ["test/load/main.ts", ...options.split(" ")], {
    cwd: root,
  });
  const { holds, phases, settled } = z.parse(
    Result,
    JSON.parse(stdout.split("\n").findLast((line) => line !== "") ?? ""),
  );
  const [usual, noisy] = phases;
  expect(phases.map(({ errors }) => errors)).toEqual(["", ""]);
  expect(settled).toMatchObject({ lostWrites: 0, lostEvents: 0, doubledEvents: 0 });
  expect(settled.writes).toBeGreaterThan(0);
  expect(usual?.others).toMatchObject({ throttled: 0, errors: 0 });
  expect(noisy?.large.throttled).toBeGreaterThan(0);
  expect(noisy?.others).toMatchObject({ throttled: 0, errors: 0 });
  expect(holds).toBe(true);
});
