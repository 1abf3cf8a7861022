/**
 * Defines the projects of the tests. The suffix of a test file says which command runs it. The suffix `.api` marks tests that send HTTP
 * requests to a local service.
 */
import { randomInt } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { leftOut } from "./test/harness/rotation.ts";

/** `npm run test:deep` and `npm run check` run these tests. They simulate killed processes, import large files, and start services. */
const DEEP = ".deep.test.ts";
/** `npm run test:long` runs these tests before a release, because they take minutes to hours. */
const LONG = ".long.test.ts";

const shared = {
  // All test files of a worker share the imported modules. Otherwise each file would load the CDK and the schemas again, which takes a
  // second.
  isolate: false,
  // A poll ends when its condition is true. This time-out only ends polls that hang. It is shorter than the time-out of the tests, so that
  // the error shows the last value.
  expect: { poll: { timeout: 240_000 } },
};
/**
 * Settings of the tests that call the code in their own process. The code logs only errors. The setup file starts a simulated KMS (key
 * service).
 */
const direct = { env: { LOG_LEVEL: "error" }, setupFiles: "test/harness/kms-setup.ts" };
/** Settings of the tests that send HTTP requests to a local service, which the global setup starts. */
const api = { globalSetup: "test/harness/local-service.ts" };
/**
 * Settings of the API tests whose requests Prism (a validating proxy) compares with the OpenAPI document, together with the answers.
 */
const prism = { globalSetup: ["test/harness/local-service.ts", "test/harness/validating-proxy.ts"] };
/** The API tests whose requests Prism does not validate. */
const withoutPrism = [
  // Another server receives the requests and copies them for Prism. It would refuse many of these damaged requests itself, so they would
  // not reach the service.
  "test/http/{hostile,unreadable}.api.test.ts",
  // The tests wait for what a browser draws. They would be slower if the browser sent its requests through the server that copies them.
  "test/console/*.api.test.ts",
  // The service redirects only requests to its own port. The server that copies the requests has another port.
  "test/sessions/localhost.api.test.ts",
];
/**
 * A number that determines which part of the expensive tests this run executes. If `TEST_DRAW` has the number of an earlier run, the same
 * part is executed.
 */
const draw = Number(process.env.TEST_DRAW ?? randomInt(1_000_000));
console.info(`TEST_DRAW=${draw}`);
const timeouts = (ms: number) => ({ testTimeout: ms, hookTimeout: ms });
// The time-outs only end tests that hang. They are so long that no test fails on a machine where several runs share the processors.
const short = { provide: { tier: "short" as const, draw }, ...shared, ...timeouts(300_000) };
const wide = { provide: { tier: "wide" as const, draw }, ...shared, ...timeouts(600_000) };
const long = { ...shared, ...timeouts(600_000) };

const all = (suffix: string) => [`test/**/*${suffix}`];
const none = (...suffixes: string[]) => ({ exclude: suffixes.map((suffix) => `test/**/*${suffix}`) });

/**
 * Small test files that take much time. Vitest runs the largest files first, so it would run these last, and one of them would run alone at
 * the end. `EarlyFirst` runs them first.
 */
const EARLY = /\/test\/(?:bench\/budgets|infra\/template-cache|webhooks\/retry-after)\.test\.ts$/;

class EarlyFirst extends BaseSequencer {
  /** Keeps the files of a project together, because they share workers. */
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const byProject = Map.groupBy(await super.sort(files), ({ project }) => project);
    const isEarly = ({ moduleId }: TestSpecification): boolean => EARLY.test(moduleId);
    return [...byProject.values()].flatMap((own) => own.toSorted((a, b) => Number(isEarly(b)) - Number(isEarly(a))));
  }
}

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
    // CI has two processors. With four workers, two can run while the others wait for the service or for a child process.
    maxWorkers: 4,
    sequence: { sequencer: EarlyFirst },
    tags: [{ name: "sized", description: "runs at the size of the project: short or wide" }],
    projects: [
      {
        test: { name: "direct", include: all(".test.ts"), ...none(".api*.test.ts", DEEP, LONG), ...direct, ...short },
      },
      { test: { name: "api", include: all(".api.test.ts"), ...api, ...short } },
      // CI runs each API test once: in this project, or in `deep-prism`.
      { test: { name: "ci-api", include: withoutPrism, ...api, ...short } },
      // CI runs only a fifth of the expensive deep tests.
      {
        test: {
          name: "ci-deep",
          include: all(DEEP),
          exclude: [...all(`.api${DEEP}`), ...leftOut(draw)],
          ...direct,
          ...short,
        },
      },
      { test: { name: "ci-deep-api", include: all(`.api${DEEP}`), exclude: leftOut(draw), ...api, ...short } },
      { test: { name: "deep", include: all(DEEP), ...none(`.api${DEEP}`), ...direct, ...short } },
      { test: { name: "deep-api", include: all(`.api${DEEP}`), ...api, ...short } },
      { test: { name: "deep-prism", include: all(".api.test.ts"), exclude: withoutPrism, ...prism, ...short } },
      // `npm run test:wide` runs only the tests with the tag `sized`, at a larger size.
      { test: { name: "wide", include: all(".test.ts"), ...none(".api*.test.ts", LONG), ...direct, ...wide } },
      { test: { name: "wide-api", include: all(".api.test.ts"), ...api, ...wide } },
      { test: { name: "long", include: all(LONG), ...none(`.api${LONG}`), ...direct, ...long } },
      { test: { name: "long-api", include: all(`.api${LONG}`), ...api, ...long } },
    ],
  },
});
