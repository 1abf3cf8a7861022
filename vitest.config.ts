/**
 * Defines the four projects of the tests. The suffix of a test file alone decides in which project it runs:
 * - `.test.ts` (unit) calls the code in its own process. `npm test` and the gate run it.
 * - `.api.test.ts` (api) sends requests to a local service, which is one process with all functions. In the gate, each call of a function
 *   needs the rights that the template grants to it.
 * - `.deep.test.ts` (deep) starts processes, browsers and services, simulates AWS, or simulates many crashes. The gate runs it.
 * - `.long.test.ts` (long) needs minutes to hours. It runs before a release.
 */
import { randomInt } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { Summary } from "./test/harness/summary.ts";

/** The seed of all property tests in this run. TEST_SEED repeats an earlier run. */
const seed = Number(process.env.TEST_SEED ?? randomInt(2 ** 31));
/** `wide` runs the tests with the tag `sized` at the size of a release. */
const tier = process.env.TEST_SIZE === "wide" ? "wide" : "short";
console.info(`TEST_SEED=${seed}`);

/** This time-out only ends tests that hang. It is so long that no test fails because several runs share the processors. */
const LIMIT_MS = 300_000;
const suffixes = { api: ".api.test.ts", deep: ".deep.test.ts", long: ".long.test.ts" } as const;
const all = (suffix: string): string => `test/**/*${suffix}`;

const shared = {
  // All test files of a worker share the imported modules and one DynamoDB server.
  isolate: false,
  provide: { tier, seed } as const,
  // A poll ends when its condition is true. This limit only ends polls that hang. It is shorter than the limit of a test, so that the error
  // shows the last value.
  expect: { poll: { timeout: LIMIT_MS - 60_000 } },
  env: { LOG_LEVEL: "error" },
  setupFiles: ["test/harness/seed.ts"],
  // Node.js loads the modules as Lambda does. The tests need no transformed modules, because they mock none.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  testTimeout: LIMIT_MS,
  hookTimeout: LIMIT_MS,
};
/** Starts a simulated KMS (key service) for the code that runs in the process of the test. */
const direct = { ...shared, setupFiles: [...shared.setupFiles, "test/harness/kms-setup.ts"] };
const globalSetup = ["test/harness/local-service.ts"];
const long = { testTimeout: 2 * LIMIT_MS, hookTimeout: 2 * LIMIT_MS };

// The processes that tests start share this cache of compiled modules. Only the first process must then turn a module from TypeScript into
// JavaScript.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/canvassing-tests");

// All temporary files are in one directory, which is removed when this process ends. A killed run cannot remove its directory, so each run
// also removes the directories of runs that no longer exist.
for (const name of readdirSync(tmpdir())) {
  const [, pid] = /^canvassing-tests-(\d+)-/.exec(name) ?? [];
  if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(tmpdir(), name), { recursive: true, force: true });
}
const temporary = mkdtempSync(join(tmpdir(), `canvassing-tests-${process.pid}-`));
process.env.TMPDIR = temporary;
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

export default defineConfig({
  test: {
    // Tests often wait for a delivery or a process. On two processors, a third worker uses this time.
    maxWorkers: 3,
    reporters: ["default", new Summary()],
    tags: [{ name: "sized", description: "runs at the size of the project: short, or wide before a release" }],
    projects: [
      { test: { name: "unit", include: [all(".test.ts")], exclude: Object.values(suffixes).map(all), ...direct } },
      { test: { name: "api", include: [all(suffixes.api)], globalSetup, ...shared } },
      { test: { name: "deep", include: [all(suffixes.deep)], globalSetup, ...direct } },
      { test: { name: "long", include: [all(suffixes.long)], globalSetup, ...direct, ...long } },
    ],
  },
});
