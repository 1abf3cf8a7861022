/** Tests the command that exports a CSV file, over a faulty connection. After a failure, the file must either be complete or not exist. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BEGIN, csvExportStage, DOWNLOAD, failure, STATE, startCsv } from "./csv-stage.ts";

const { as, proxy, folder, whole, newFile, args, run, start, siblings } = await csvExportStage();

test("writes the bytes of the streamed export in place of an older file", async () => {
  const file = newFile();
  writeFileSync(file, "old");
  const { code, stdout, stderr } = await run(file);
  expect(code, stderr).toBe(0);
  expect(stdout).toBe(`${file}: 600 prospects\n`);
  expect(readFileSync(file, "utf8")).toBe(whole);
  expect(siblings(file)).toEqual([]);
});

test("accepts the filters of the list", async () => {
  const file = newFile();
  expect(await run(file, "--city", "denver", "--bbox=-106,39.01,-104,40")).toMatchObject({ code: 0 });
  const { text } = await as.owner("GET", "/api/prospects/export?city=Denver&bbox=-106,39.01,-104,40");
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(text.length).toBeLessThan(whole.length / 2);
  expect(await run(file, "--near=39.01,-105", "--max-meters", "500")).toMatchObject({ code: 0 });
  const near = await as.owner("GET", "/api/prospects/export?near=39.01,-105&maxMeters=500");
  expect(readFileSync(file, "utf8")).toBe(near.text);
  expect(near.text.length).toBeLessThan(whole.length / 2);
});

test("reports that the bucket has lost the file; the same command makes a new export", async () => {
  const file = newFile();
  proxy.fail(DOWNLOAD, { answer: 404 });
  expect(await run(file)).toMatchObject(failure(1, "no longer has the file"));
  expect(siblings(file)).toEqual([]);
  expect(await run(file)).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toBe(whole);
});

test("the same command resumes an export that was killed while it waited, and a completed one is made again", async () => {
  const file = newFile();
  const filter = "--bbox=-106,38.5,-104,41";
  const used = (): string | undefined => proxy.calls.findLast((call) => call.startsWith(STATE));
  proxy.fail(STATE, { hold: "request" });
  const waiting = start(file, filter);
  await proxy.received(STATE);
  waiting.child.kill("SIGKILL");
  await waiting.ended;
  proxy.fail(DOWNLOAD, { hold: "request" });
  const receiving = start(file, filter);
  await proxy.received(DOWNLOAD);
  receiving.child.kill("SIGINT");
  expect(await receiving.ended).toMatchObject(failure(3, "interrupted: run the same command to resume"));
  expect(existsSync(file)).toBe(false);
  const completed = used();
  expect(await run(file, filter)).toMatchObject({ code: 0 });
  expect(used()).not.toBe(completed);
  const { text } = await as.owner("GET", "/api/prospects/export?bbox=-106,38.5,-104,41");
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(siblings(file)).toEqual([]);
});

test("a file may contain only the header; a wrong filter is reported", async () => {
  const file = newFile();
  expect(await run(file, "--city", "Nowhere")).toMatchObject({ code: 0, stdout: `${file}: 0 prospects\n` });
  expect(readFileSync(file, "utf8")).toBe(whole.slice(0, whole.indexOf("\r\n") + 2));
  const wrong = newFile();
  expect(await run(wrong, "--bbox=5")).toMatchObject(failure(1, "bbox must be four numbers"));
  expect(existsSync(wrong)).toBe(false);
});

test("a pipe or folder is not replaced", async () => {
  const pipe = `${newFile()}.pipe`;
  execFileSync("mkfifo", [pipe]);
  for (const other of [pipe, folder]) {
    expect(await run(other)).toMatchObject(failure(1, `${other} is not a regular file and cannot be replaced\n`));
  }
  expect(statSync(pipe).isFIFO()).toBe(true);
});

test("a local error ends the command at once with one line, without another export", async () => {
  const file = newFile();
  const begun = (): number => proxy.calls.filter((call) => call === BEGIN).length;
  const before = begun();
  const missing = join(file, "../nowhere");
  const stderr = `target: service at ${proxy.url}\nENOENT: no such file or directory, access '${missing}'\n`;
  expect(await run(join(missing, "x.csv"))).toEqual({ code: 1, stdout: "", stderr });
  expect(begun()).toBe(before);
  // `ulimit -f 1` limits each file to one kilobyte, as if the disk were full.
  const full = startCsv(["export", ...args(file, "--bbox=-106,38,-104,41")], "ulimit -f 1");
  expect(await full.ended).toMatchObject(failure(1, "file too large"));
  expect(begun()).toBe(before + 1);
  expect(existsSync(file)).toBe(false);
  expect(siblings(file)).toEqual([]);
});
