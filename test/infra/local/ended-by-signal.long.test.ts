/**
 * Tests that signals end `npm start -- --memory` with exit code 0, and that it leaves no files. Ctrl-C in a terminal signals npm and the
 * service at once, and npm forwards the signal to the service, so the service gets each signal twice.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { type Started, startByNpm } from "./start-process.ts";

/** The temporary directory of the service under test. */
let temporary = "";
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), "canvassing-signals-"));
});

const npmStart = (): Started => startByNpm(["--memory"], { TMPDIR: temporary });

/** Does what a terminal does at Ctrl-C: it signals each process of the group. */
function interrupt({ child }: Started): void {
  if (child.pid === undefined) throw new Error("npm did not start");
  process.kill(-child.pid, "SIGINT");
}

/** Returns the directories in /dev/shm (a file system in memory) that the processes of the service use. */
function inMemory({ child }: Started): string[] {
  const rows = execFileSync("ps", ["-eo", "pid=,ppid=,args="], { encoding: "utf8" })
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []);
  const family = new Set([String(child.pid)]);
  for (const before of [0, 1, 2, 3]) {
    for (const [, pid = "", parent = ""] of rows) if (family.has(parent)) family.add(pid);
    if (family.size === before) break;
  }
  const args = rows.flatMap(([, pid = "", , line = ""]) => (family.has(pid) ? [line] : []));
  return [...new Set(args.flatMap((line) => line.match(/\/dev\/shm\/canvassing-\w+/g) ?? []))];
}

/** The names of the service's own files in its temporary directory. Node.js and npm also use this directory. */
const left = (): string[] => readdirSync(temporary).filter((name) => name.startsWith("canvassing"));

test("Ctrl-C ends the running service with exit code 0, and no file is left", async () => {
  const started = npmStart();
  const url = await started.ready;
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect(left()).toHaveLength(1);
  const directories = inMemory(started);
  interrupt(started);
  expect(await started.code).toBe(0);
  expect(left()).toEqual([]);
  expect(directories.filter((place) => existsSync(place))).toEqual([]);
});

test("Ctrl-C during the start leaves no file", async () => {
  const started = npmStart();
  while (left().length === 0) await wait(5);
  interrupt(started);
  expect(await started.code).toBe(0);
  expect(left()).toEqual([]);
});

test("a signal that is repeated until the service ends leaves no file", async () => {
  const started = npmStart();
  const { hostname, port } = new URL(await started.ready);
  const directories = inMemory(started);
  // The service waits some seconds for this unfinished request, so that it is still running when the signal is repeated.
  const unfinished = connect(Number(port), hostname);
  unfinished.on("error", () => undefined);
  await once(unfinished, "connect");
  unfinished.write("POST /api/prospects HTTP/1.1\r\nHost: local\r\nContent-Length: 10\r\n\r\n{");
  let isEnded = false;
  void started.code.then(() => {
    isEnded = true;
  });
  while (!isEnded) {
    started.child.kill("SIGTERM");
    await wait(100);
  }
  unfinished.destroy();
  expect(left()).toEqual([]);
  expect(directories.filter((place) => existsSync(place))).toEqual([]);
});
