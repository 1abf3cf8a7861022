/** Test run: laws and rules by themselves; the API suite on one local service that the global setup starts; soaks apart from both. */
import { defineConfig } from "vitest/config";

/** Many repetitions of a law that a shorter test states as well: `npm run test:long`, before a release. */
const LONG = "long.test.ts";

const shared = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Files of a worker share what they import: the CDK and the schemas take a second to load each time.
  isolate: false,
};
const short = { exclude: [`test/**/*.${LONG}`], provide: { tier: "short" as const }, ...shared };
const long = { provide: { tier: "long" as const }, ...shared, testTimeout: 600_000 };
const service = { globalSetup: "test/local-service.ts" };
const quiet = { env: { LOG_LEVEL: "error" } };
/** Tests of both tiers, which take their size from the tier that runs them (test/tier.ts). */
const SIZED = `test/fault/{${[
  "attached",
  "chaos",
  "company-index",
  "concurrency",
  "export",
  "export-jobs",
  "import",
  "import-jobs",
  "index-manifest",
  "index-rebuild",
  "pausing",
  "presses",
  "replaying",
  "windows",
].join()}}.test.ts`;

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], ...short } },
      {
        test: { name: "fault", include: ["test/fault/**/*.test.ts"], ...quiet, ...short },
      },
      { test: { name: "bench", include: ["test/bench/**/*.test.ts"], ...short } },
      { test: { name: "infra", include: ["test/infra/**/*.test.ts"], ...short } },
      { test: { name: "api", include: ["test/api/**/*.test.ts"], ...service, ...short } },
      { test: { name: "long", include: [SIZED, `test/{unit,fault,bench,infra}/**/*.${LONG}`], ...quiet, ...long } },
      { test: { name: "long-api", include: [`test/api/**/*.${LONG}`], ...service, ...long } },
    ],
  },
});
