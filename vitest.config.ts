/** Test run: laws and rules by themselves; the API suite on one local service that the global setup starts. */
import { defineConfig } from "vitest/config";

const timeouts = { testTimeout: 120_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], ...timeouts } },
      { test: { name: "fault", include: ["test/fault/**/*.test.ts"], env: { LOG_LEVEL: "error" }, ...timeouts } },
      { test: { name: "infra", include: ["test/infra/**/*.test.ts"], ...timeouts } },
      {
        test: { name: "api", include: ["test/api/**/*.test.ts"], globalSetup: "test/local-service.ts", ...timeouts },
      },
    ],
  },
});
