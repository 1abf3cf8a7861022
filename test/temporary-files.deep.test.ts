/**
 * Tests that a test run leaves no file in the temporary directory. Also tests that a test run removes the files of an earlier, killed run.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";

const directory = mkdtempSync(join(tmpdir(), "canvassing-runs-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const TEST = "test/harness/once.test.ts";
const root = resolve(import.meta.dirname, "..");

/**
 * Runs a test file that creates temporary directories. The test runner must be a direct child process of this test. After a kill, a
 * grandchild could remain in the list of processes and would look as if it were still running.
 */
const run = () =>
  spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", "--project", "unit", TEST], {
    cwd: root,
    env: { ...process.env, TMPDIR: directory },
    stdio: "ignore",
    detached: true,
  });

test("a run leaves nothing, and removes what a killed run has left", async () => {
  const killed = run();
  while (readdirSync(directory).length === 0) await new Promise((resume) => setTimeout(resume, 20));
  if (killed.pid !== undefined) process.kill(-killed.pid, "SIGKILL");
  await once(killed, "exit");
  const [left = ""] = readdirSync(directory);
  expect(left).toMatch(/^canvassing-tests-\d+-/);

  const whole = run();
  expect(await once(whole, "exit")).toEqual([0, null]);
  expect(readdirSync(directory)).toEqual([]);
});
