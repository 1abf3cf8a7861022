/** Test run: laws and rules by themselves; the API suite on one local service that the global setup starts. */
import { defineConfig } from "vitest/config";

const shared = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Files of a worker share what they import: the CDK and the schemas take a second to load each time.
  isolate: false,
};

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], ...shared } },
      { test: { name: "fault", include: ["test/fault/**/*.test.ts"], env: { LOG_LEVEL: "error" }, ...shared } },
      { test: { name: "bench", include: ["test/bench/**/*.test.ts"], ...shared } },
      { test: { name: "infra", include: ["test/infra/**/*.test.ts"], ...shared } },
      {
        test: { name: "api", include: ["test/api/**/*.test.ts"], globalSetup: "test/local-service.ts", ...shared },
      },
    ],
  },
});
