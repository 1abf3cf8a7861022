/** Runs the load test for a short time with few companies. It asserts only counts, because times depend on the machine. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { root } from "../../infra/build/bundle.ts";
import { type StartedService, startService } from "../bench/started-service.ts";
import { operations } from "./arrivals.ts";
import { patientCall } from "./calls.ts";
import { localMembers } from "./companies.ts";

const undo: (() => unknown)[] = [];
afterAll(async () => {
  for (const step of undo) await step();
});

async function load(options: string, env: NodeJS.ProcessEnv = {}): Promise<unknown> {
  const args = ["test/load/main.ts", ...options.split(" "), "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env: { ...process.env, ...env } });
  return JSON.parse(stdout.split("\n").findLast((line) => line !== "") ?? "");
}

const some = expect.schemaMatching(z.int().check(z.positive()));
const nothingLost = { lostWrites: 0, lostEvents: 0, doubledEvents: 0 };

test("one company's excess is refused with 429, and the others lose nothing", async () => {
  // In the phase with `--noisy 20`, the large company sends about 40 requests a second, but only 4 a second are allowed. The phases are too
  // short to compare latencies, so `--max-ratio 0` accepts every ratio.
  const result = await load(
    "--companies 6 --large-reps 60 --large-prospects 300 --seconds 2 --noisy 20 --company-rate 4 --max-ratio 0",
  );
  const others = { throttled: 0, errors: 0 };
  const phases = [
    { errors: "", others },
    { errors: "", others, large: { throttled: some } },
  ];
  expect(result).toMatchObject({ holds: true, phases, settled: { ...nothingLost, writes: some } });
});

const Webhooks = z.array(z.unknown());

test("ten times the load on a running service is refused with 429, and no write or event is lost", async () => {
  const service: StartedService = await startService(["--seed", "300"], { COMPANY_RATE: "4" });
  undo.push(service.stop);
  const members = await localMembers(service.url, { companies: 3, reps: 2, "large-reps": 60 });
  const env = { LOAD_TOKENS: JSON.stringify(members) };
  const result = await load(`--base ${service.url} --seconds 2 --times 10`, env);
  const all = { operation: "all", errors: 0 };
  const rowsEndingWith = (row: object) => [...operations.map((operation) => ({ operation })), row];
  const phases = [
    { errors: "", rows: rowsEndingWith(all) },
    { errors: "", rows: rowsEndingWith({ ...all, throttled: some, ok: some }) },
  ];
  expect(result).toMatchObject({ holds: true, phases, settled: { ...nothingLost, writes: some } });
  // The load test has removed its webhooks, because it has not started this service.
  for (const { admin } of members) {
    expect(Webhooks.parse(await patientCall(service.url, admin, "GET", "/api/webhooks"))).toEqual([]);
  }
});

test.each(["bulk", "hanging", "fan-out"])("beside %s of one company, no write or event is lost", async (name) => {
  const options = `--companies 3 --large-prospects 200 --seconds 2 --beside ${name} --company-rate 60`;
  expect(await load(options)).toMatchObject({
    holds: true,
    phases: [{ errors: "" }, { errors: "" }],
    settled: nothingLost,
  });
});
