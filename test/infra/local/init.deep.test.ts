/** Tests that the local runtime loads a function again if loading it fails or takes too long, as Lambda does. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { UNCAUGHT, writeWorker } from "../../../infra/local/runtime/environment.ts";
import { createFunction } from "../../../infra/local/runtime/function.ts";
import { warmEnvironments } from "../../../infra/local/runtime/pool.ts";

const directory = mkdtempSync(path.join(tmpdir(), "canvassing-init-"));
const worker = path.join(directory, "worker.mjs");
const warm = warmEnvironments();
beforeAll(() => writeWorker(worker));
afterAll(() => warm.clear());

const lines: string[] = [];

/** The code of the function runs `first` when it is first loaded, `later` when it is loaded again, and `handler` at each invocation. */
function functionThat(first: string, later = "", handler = "") {
  const own = mkdtempSync(path.join(directory, "function-"));
  writeFileSync(
    path.join(own, "index.mjs"),
    `import { existsSync, appendFileSync } from "node:fs";
const loads = ${JSON.stringify(path.join(own, "loads"))};
const isFirst = !existsSync(loads);
appendFileSync(loads, "x");
if (isFirst) { ${first} } else { ${later} }
export const handler = async () => { ${handler} return "loaded"; };`,
  );
  const spec = {
    name: "Slow",
    file: "slow",
    directory: own,
    Handler: "index.handler",
    Runtime: "nodejs24.x",
    Timeout: 60,
    MemorySize: 128,
    LoggingConfig: { LogFormat: "JSON", ApplicationLogLevel: "INFO", SystemLogLevel: "INFO" },
  } as const;
  return createFunction({ id: "Slow", ...spec }, 1, {
    variables: {},
    worker,
    compileCache: null,
    warm,
    log: (_, line) => void lines.push(line),
    onInvoked: () => undefined,
    initTimeoutMs: 2_000,
  });
}

const never = "await new Promise(() => setInterval(() => undefined, 60_000));";

test.each([
  ["takes too long", never],
  ["fails", 'throw new Error("as asked");'],
])("code whose first load %s is loaded again, and answers all waiting requests", async (_, first) => {
  const slow = functionThat(first);
  expect(await Promise.all([1, 2, 3].map(() => slow.invoke({})))).toEqual(['"loaded"', '"loaded"', '"loaded"']);
  await slow.stop();
});

test("code that fails at both loads is an error, and the next request tries again", async () => {
  const broken = functionThat('throw new Error("first");', 'throw new Error("later");');
  for (let request = 0; request < 2; request++) {
    await expect(broken.invoke({})).rejects.toMatchObject({ name: "InvocationError" });
  }
  await broken.stop();
});

test("a promise that rejects after its invocation was answered is logged, and a new environment gets the next invocation", async () => {
  const answered = path.join(directory, "answered");
  const reject = `if (existsSync(${JSON.stringify(answered)})) Promise.reject(new Error("left behind"));`;
  const careless = functionThat("", "", `if (isFirst) setInterval(() => { ${reject} }, 5);`);
  expect(await careless.invoke({})).toBe('"loaded"');
  // The function's promise rejects only when this file exists. If the promise rejected earlier, the crash might arrive before the answer.
  writeFileSync(answered, "");
  const found = (): string[] => lines.filter((line) => line.includes("left behind"));
  await expect.poll(found).toEqual([expect.stringContaining(`"message":"${UNCAUGHT}`)]);
  expect(await careless.invoke({})).toBe('"loaded"');
  await careless.stop();
});
