/** Ends the report of a test run: the ten slowest tests, errors that no test has caught, and the numbers of tests. */
import { relative } from "node:path";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

const SHOWN = 10;
const LONG_MS = 20_000;

/** Why tests of `npm run test:gate` need more than 20 seconds. A key is a part of a test's full name, which begins with the file. */
const reasons: Readonly<Record<string, string>> = {
  "test/offline/devices.api.test.ts":
    "Three phones synchronize completely after random steps, one request after the other.",
  "test/console/days.deep.test.ts":
    "A random day has twelve steps in up to four tabs, and some sign out and load the page again.",
};

function line(name: string, ms: number): string {
  const reason = Object.entries(reasons).find(([end]) => name.includes(end))?.[1];
  const needsReason = ms > LONG_MS && !name.includes(".long.test.ts");
  const why = reason ?? (needsReason ? "NO REASON GIVEN: add one in test/harness/summary.ts" : "");
  return `${(ms / 1000).toFixed(1).padStart(6)} s  ${name}  ${why}`.trimEnd();
}

export class Summary implements Reporter {
  /** Prints each error at once, because vitest shows errors only at the end of a run, and a run of hours may be stopped before its end. */
  onTestCaseResult(test: TestCase): void {
    for (const { message } of test.result().errors ?? []) console.log(`FAILED ${test.fullName}: ${message}`);
  }

  onTestRunEnd(modules: readonly TestModule[], uncaught: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({
        name: `${module.relativeModuleId} > ${test.fullName}`,
        ms: test.diagnostic()?.duration ?? 0,
        state: test.result().state,
      })),
    );
    const count = (state: string): number => tests.filter((test) => test.state === state).length;
    console.log("the slowest tests:");
    for (const { name, ms } of tests.toSorted((a, b) => b.ms - a.ms).slice(0, SHOWN)) console.log(line(name, ms));
    // If a test leaves a rejected promise behind, the test passes, but the test run fails. The printed line names this test.
    for (const { VITEST_TEST_PATH: file, VITEST_TEST_NAME: name, type, message } of uncaught) {
      const place = `${relative(process.cwd(), String(file))} > ${String(name ?? "after its tests")}`;
      console.log(`${String(type)} in ${place}: ${message}`);
    }
    console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
  }
}
