/** Test run. The suffix of a file is its tier: `.deep`, `.long`, or neither; with `.api` it is black box, on one local service. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** Kills at every call, large files, whole processes: `npm run test:deep`, in the gate as well. */
const DEEP = ".deep.test.ts";
/** Many repetitions of a law that a shorter test states as well: `npm run test:long`, before a release. */
const LONG = ".long.test.ts";

const shared = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Files of a worker share what they import: the CDK and the schemas take a second to load each time.
  isolate: false,
};
/** Its own parts in this process, with the log off and a key service. */
const direct = { env: { LOG_LEVEL: "error" }, setupFiles: "test/harness/kms-setup.ts" };
/** Requests over HTTP to a local service that the global setup starts. */
const api = { globalSetup: "test/harness/local-service.ts" };
const short = { provide: { tier: "short" as const }, ...shared };
const wide = { provide: { tier: "wide" as const }, ...shared, testTimeout: 600_000 };
const long = { ...shared, testTimeout: 600_000 };

const all = (suffix: string) => [`test/**/*${suffix}`];
const none = (...suffixes: string[]) => ({ exclude: suffixes.map((suffix) => `test/**/*${suffix}`) });

// Processes that tests start find each module compiled, and rid of its types, by the first of them that loads it.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/canvassing-tests");

// One directory holds the temporary files of a run, its processes included. The end of the run removes it.
const temporary = mkdtempSync(join(tmpdir(), "canvassing-tests-"));
process.env.TMPDIR = temporary;
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));

export default defineConfig({
  test: {
    // One more than the processors that it must do with: a worker often waits for the service, or for a process that it has started.
    maxWorkers: 3,
    tags: [{ name: "sized", description: "its size is the tier's" }],
    projects: [
      {
        test: { name: "direct", include: all(".test.ts"), ...none(".api*.test.ts", DEEP, LONG), ...direct, ...short },
      },
      { test: { name: "api", include: all(".api.test.ts"), ...api, ...short } },
      { test: { name: "deep", include: all(DEEP), ...none(`.api${DEEP}`), ...direct, ...short } },
      { test: { name: "deep-api", include: all(`.api${DEEP}`), ...api, ...short } },
      // The tests with the tag `sized` take their size from the tier; the wide tier runs nothing else.
      { test: { name: "wide", include: all(".test.ts"), ...none(".api*.test.ts", LONG), ...direct, ...wide } },
      { test: { name: "wide-api", include: all(".api.test.ts"), ...api, ...wide } },
      { test: { name: "long", include: all(LONG), ...none(`.api${LONG}`), ...direct, ...long } },
      { test: { name: "long-api", include: all(`.api${LONG}`), ...api, ...long } },
    ],
  },
});
