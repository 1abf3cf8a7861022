/** Test run: laws and rules by themselves; the API suite on one local service that the global setup starts; whole sizes and soaks apart. */
import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** Deaths by the hundred, large files, whole processes: `npm run test:deep`, in the gate as well. */
const DEEP = "deep.test.ts";
/** Many repetitions of a law that a shorter test states as well: `npm run test:long`, before a release. */
const LONG = "long.test.ts";

const shared = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Files of a worker share what they import: the CDK and the schemas take a second to load each time.
  isolate: false,
};
const deep = { provide: { tier: "short" as const }, ...shared };
const short = { exclude: [`test/**/*.${DEEP}`, `test/**/*.${LONG}`], ...deep };
const wide = { provide: { tier: "wide" as const }, ...shared, testTimeout: 600_000 };
const long = { ...shared, testTimeout: 600_000 };
const service = { globalSetup: "test/local-service.ts" };
/** Webhooks are made in these without the rest of the service. */
const quiet = { env: { LOG_LEVEL: "error" }, setupFiles: "test/kms-setup.ts" };
/** Tests that take their size from the tier that runs them (test/tier.ts) and have the tag `sized`. */
const SIZED_API = "test/api/{hostile,matrix}.test.ts";
const SIZED = [
  "test/unit/company-index.test.ts",
  "test/fault/{batches,calendar,events,export-jobs,index-manifest,pausing,presses,upcoming}.test.ts",
  `test/infra/app.${DEEP}`,
  `test/fault/{${[
    "attached",
    "chaos",
    "company-index",
    "concurrency",
    "deleting",
    "export",
    "fan-out",
    "gate-kills",
    "import",
    "import-jobs",
    "index-rebuild",
    "replaying",
    "windows",
  ].join()}}.${DEEP}`,
];

// Processes that tests start find each module compiled, and rid of its types, by the first of them that loads it.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/canvassing-tests");

export default defineConfig({
  test: {
    // One more than the processors that it must do with: a worker often waits for the service, or for a process that it has started.
    maxWorkers: 3,
    tags: [{ name: "sized", description: "its size is the tier's" }],
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], ...short } },
      {
        test: { name: "fault", include: ["test/fault/**/*.test.ts"], ...quiet, ...short },
      },
      { test: { name: "bench", include: ["test/bench/**/*.test.ts"], ...short } },
      { test: { name: "infra", include: ["test/infra/**/*.test.ts"], ...short } },
      { test: { name: "api", include: ["test/api/**/*.test.ts"], ...service, ...short } },
      { test: { name: "deep", include: [`test/{unit,fault,bench,infra}/**/*.${DEEP}`], ...quiet, ...deep } },
      { test: { name: "deep-api", include: [`test/api/**/*.${DEEP}`], ...service, ...deep } },
      { test: { name: "wide", include: SIZED, ...quiet, ...wide } },
      { test: { name: "wide-api", include: [SIZED_API], ...service, ...wide } },
      { test: { name: "long", include: [`test/{unit,fault,bench,infra}/**/*.${LONG}`], ...quiet, ...long } },
      { test: { name: "long-api", include: [`test/api/**/*.${LONG}`], ...service, ...long } },
    ],
  },
});
