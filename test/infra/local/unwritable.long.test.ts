/**
 * Tests `npm start` on a machine that lacks something: a cache that can be written, free space, or the right version of Node.js. Either the
 * service works, or one sentence says what the user should do.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { refuseFullDisk } from "../../../infra/local/data-dir.ts";
import { unwritable } from "../../../infra/local/servers/error.ts";
import { type Started, start } from "./start-process.ts";

const directory = mkdtempSync(join(tmpdir(), "canvassing-unwritable-"));

/** Starts the service and ends it when it is ready. */
async function startedWith(env: Record<string, string>): Promise<Started> {
  const started = start([], env);
  await started.ready;
  started.child.kill("SIGTERM");
  await once(started.child, "close");
  return started;
}

test("with a cache that cannot be written, the service builds in DATA_DIR, and the next start finds the build there", async () => {
  const file = join(directory, "file");
  writeFileSync(file, "");
  const data = join(directory, "data");
  const env = { CI_CACHES: join(file, "caches"), DATA_DIR: data };
  const first = await startedWith(env);
  expect(first.complaints()).toBe(
    `${env.CI_CACHES} cannot be written (ENOTDIR), so this start builds in ${join(data, "caches")}\n`,
  );
  expect(first.output()).toMatch(/^built the functions in /m);
  expect(readdirSync(join(data, "caches")).sort()).toEqual(["bundles", "templates"]);
  const second = await startedWith(env);
  expect(second.complaints()).toBe("");
  expect(second.output()).toMatch(/^copied the functions in /m);
});

test("a full disk leads to one sentence", () => {
  // No bytes are free on the file system /proc.
  expect(() => refuseFullDisk("DATA_DIR", "/proc")).toThrow(
    "DATA_DIR: the disk of /proc has only 0 MB free: free 50 MB, or set DATA_DIR to a directory on another disk",
  );
  expect(() => refuseFullDisk("DATA_DIR", root)).not.toThrow();
});

test.each(["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOTDIR"])(
  "the error %s of a write becomes one sentence",
  (code) => {
    expect(unwritable(Object.assign(new Error("write"), { code, path: "/data/tables.db" }))).toBe(
      `/data/tables.db cannot be written (${code}): set DATA_DIR to a directory that this user may write, on a disk with free space`,
    );
  },
);

test("other errors keep their stack trace", () => {
  expect(unwritable(Object.assign(new Error("read"), { code: "ENOENT" }))).toBeUndefined();
});

test("an older Node.js says in one sentence how to get the right one", () => {
  // A module that is loaded first reports an older version, because the tests run with the right one.
  const older = `data:text/javascript,${encodeURIComponent('Object.defineProperty(process.versions, "node", { value: "20.20.2" })')}`;
  const check = join(root, "infra/cli/command/node-version.js");
  const run = spawnSync(process.execPath, ["--import", older, "--import", check, "--eval", "console.log(1)"], {
    encoding: "utf8",
  });
  expect([run.status, run.stdout, run.stderr]).toEqual([
    1,
    "",
    "The service needs Node.js 24, and this is Node.js 20.20.2. npm ci installs Node.js 24 unless it ignores scripts: run npm rebuild node --ignore-scripts=false\n",
  ]);
});
