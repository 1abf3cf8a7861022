/** Tests what `npm start` refuses in one line: wrong settings, a port in use, and data of another version or of another program. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { openDataDir } from "../../../infra/local/data-dir.ts";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { start } from "./start-process.ts";

test("a port in use leads to one line of output and exit code 1", async () => {
  const taken = await serveOnLoopback(async () => undefined);
  const port = Number(new URL(taken.endpoint).port);
  const { code, output } = start(["--memory"], { PORT: String(port) });
  expect(await code).toBe(1);
  expect(output()).toBe(`port ${port} is in use: choose another one, for example PORT=${port + 1} npm start\n`);
  taken.stop();
});

test.each([
  ["a data directory in a file", { DATA_DIR: "package.json/data" }],
  ["a data directory in which nothing can be created", { DATA_DIR: "/proc/data" }],
])("%s leads to one line of output and exit code 1", async (_, env) => {
  const { child, code, output } = start([], env);
  // A process that hangs at its start does not return to the event loop, so it would ignore SIGTERM.
  const hanging = setTimeout(() => child.kill("SIGKILL"), 120_000);
  expect(await code).toBe(1);
  clearTimeout(hanging);
  expect(output()).toMatch(/^DATA_DIR: \S+ cannot be used as a directory \(E[A-Z]+\): set it to another one\n$/);
  expect(output()).toContain(env.DATA_DIR);
});

describe("a data directory", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "canvassing-form-"));
    mkdirSync(join(directory, "queues"));
    for (const name of ["tables.db", "queues/queues.db", "encryption-keys.json"]) {
      writeFileSync(join(directory, name), `the content of ${name}`);
    }
  });

  const contents = (): [string, string][] =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }): [string, string] => [
        join(parentPath, name),
        readFileSync(join(parentPath, name), "utf8"),
      ])
      .sort(([a], [b]) => (a < b ? -1 : 1));

  test.each(["", "0.9.0", "2.0.0"])("the form '%s' is refused, and the directory stays as it is", async (form) => {
    writeFileSync(join(directory, "complete"), form);
    const before = contents();
    await expect(openDataDir(directory, false)).rejects.toThrow("begin anew with --fresh");
    expect(contents()).toEqual(before);
  });

  test("--fresh deletes data of another form, and the present form is opened", async () => {
    writeFileSync(join(directory, "complete"), "0.9.0");
    const fresh = await openDataDir(directory, true);
    expect(contents().map(([file]) => file)).toEqual([join(directory, "complete"), join(directory, "lock")]);
    fresh.markComplete();
    fresh.release();
    const before = contents();
    (await openDataDir(directory, false)).release();
    expect(contents()).toEqual(before);
  });

  test.each([false, true])(
    "a directory with data of another program is refused (--fresh: %s), and stays as it is",
    async (fresh) => {
      writeFileSync(join(directory, "tables.db"), "of another program");
      const before = contents();
      await expect(openDataDir(directory, fresh)).rejects.toThrow("tables.db, which this service has not written");
      expect(contents()).toEqual(before);
    },
  );

  test("what an interrupted first start has written is deleted by the next one, and other files stay", async () => {
    for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
    writeFileSync(join(directory, "notes.txt"), "of the user");
    const interrupted = await openDataDir(directory, false);
    writeFileSync(join(directory, "tables.db"), "a half");
    interrupted.release();
    (await openDataDir(directory, false)).release();
    expect(contents().map(([file]) => file)).toEqual([join(directory, "complete"), join(directory, "notes.txt")]);
  });
});
