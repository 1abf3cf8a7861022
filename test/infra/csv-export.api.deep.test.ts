/** The command-line client over poor lines: an exported file is whole or not there, whatever breaks. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { baseUrl } from "../harness/client.ts";
import { csv, startCsv, startCsvWith } from "../harness/csv-command.ts";
import { startPoorLine } from "../harness/poor-line.ts";
import { uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const line = await startPoorLine(baseUrl());
const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
afterAll(() => {
  line.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Kilobytes when it is gzipped. */
const ROWS = 600;
const STREAM = "GET /api/prospects/export";
const JOB = "POST /api/prospects/exports";
const JOB_STATE = "GET /api/prospects/exports/";
const DOWNLOAD = "GET /exports";

let whole = "";
beforeAll(async () => {
  const file = join(folder, "all.csv");
  const rows = Array.from(
    { length: ROWS },
    (_, i) => `"He said ""${i}""\n,",${39 + i / 1e4},-105,${i % 3 === 0 ? "Denver" : "Golden"}\r\n`,
  );
  writeFileSync(file, `name,lat,lng,city\r\n${rows.join("")}`);
  expect(await csv("import", file, "--base", line.url, "--as", as.owner.email)).toMatchObject({ code: 0 });
  whole = (await as.owner("GET", "/api/prospects/export")).text;
});

const newFile = (): string => join(mkdtempSync(join(folder, "to-")), `${uniqueName()}.csv`);
const args = (file: string, more: readonly string[]) => [file, "--base", line.url, "--as", as.owner.email, ...more];
const run = (file: string, ...more: readonly string[]) => csv("export", ...args(file, more));
const start = (file: string, ...more: readonly string[]) => startCsv("export", ...args(file, more));
/** What stands beside the file. */
const beside = (file: string): string[] => readdirSync(join(file, "..")).filter((name) => !file.endsWith(name));

test.each([["--stream"], ["--job"]])(
  "%s: the file of the interface, byte for byte, in place of an older one",
  async (way) => {
    const file = newFile();
    writeFileSync(file, "old");
    const { code, said, told } = await run(file, way);
    expect(code, told).toBe(0);
    expect(said).toBe(`${file}: 600 prospects\n`);
    expect(readFileSync(file, "utf8")).toBe(whole);
    expect(beside(file)).toEqual([]);
  },
);

test.each([["--stream"], ["--job"]])("%s: filters are those of the list", async (way) => {
  const file = newFile();
  expect(await run(file, way, "--city", "denver", "--bbox=-106,39.01,-104,40")).toMatchObject({ code: 0 });
  const filter = "?city=Denver&bbox=-106,39.01,-104,40";
  const { text } = await as.owner("GET", `/api/prospects/export${filter}`);
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(text.length).toBeLessThan(whole.length / 2);
});

test("a streamed answer that breaks is begun anew, one that only looks whole is not taken", async () => {
  const file = newFile();
  line.trouble(STREAM, { cut: "answer", after: 2_000 }, { shorten: 3_000 });
  const { code, told } = await run(file);
  expect(code, told).toBe(0);
  expect(told.match(/nothing of it is kept/g)).toHaveLength(2);
  expect(readFileSync(file, "utf8")).toBe(whole);
});

test("one that always breaks is left to the service to make; where that is not wanted, the old file stays", async () => {
  const file = newFile();
  const cuts = Array.from({ length: 3 }, () => ({ cut: "answer", after: 2_000 }) as const);
  line.trouble(STREAM, ...cuts);
  const made = line.calls.filter((call) => call === JOB).length;
  expect(await run(file)).toMatchObject({ code: 0 });
  expect(line.calls.filter((call) => call === JOB)).toHaveLength(made + 1);
  expect(readFileSync(file, "utf8")).toBe(whole);
  writeFileSync(file, "old");
  line.trouble(STREAM, ...cuts);
  expect(await run(file, "--stream")).toMatchObject({ code: 3 });
  expect(readFileSync(file, "utf8")).toBe("old");
  expect(beside(file)).toEqual([]);
});

test("a download that breaks goes on where it was", async () => {
  const file = newFile();
  line.trouble(
    DOWNLOAD,
    { answer: 503 },
    { cut: "answer", after: 1_000 },
    { lose: "answer" },
    { cut: "answer", after: 1_000 },
  );
  const { code, told } = await run(file, "--job");
  expect(code, told).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(whole);
});

test("a file that the bucket does not have any more is told; the same command has another one made", async () => {
  const file = newFile();
  line.trouble(DOWNLOAD, { answer: 404 });
  expect(await run(file, "--job")).toMatchObject({ code: 2, told: expect.stringContaining("not kept any more") });
  expect(beside(file)).toEqual([]);
  expect(await run(file, "--job")).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toBe(whole);
});

test("killed while it waits, and stopped while it receives: the same command goes on with the same export", async () => {
  const file = newFile();
  const count = (): number => line.calls.filter((call) => call === JOB).length;
  const before = count();
  line.trouble(JOB_STATE, { hold: "request" });
  const waiting = start(file, "--job");
  await line.came(JOB_STATE);
  waiting.child.kill("SIGKILL");
  await waiting.ended;
  line.trouble(DOWNLOAD, { hold: "request" });
  const receiving = start(file);
  await line.came(DOWNLOAD);
  receiving.child.kill("SIGINT");
  expect(await receiving.ended).toMatchObject({ code: 3, told: expect.stringContaining("the same command goes on") });
  expect(existsSync(file)).toBe(false);
  expect(await run(file)).toMatchObject({ code: 0 });
  expect(count()).toBe(before + 1);
  expect(readFileSync(file, "utf8")).toBe(whole);
  expect(beside(file)).toEqual([]);
});

test("an answer of nothing but the header is whole; a filter that is wrong is told", async () => {
  const file = newFile();
  expect(await run(file, "--city", "Nowhere")).toMatchObject({ code: 0, said: `${file}: 0 prospects\n` });
  expect(readFileSync(file, "utf8")).toBe(whole.slice(0, whole.indexOf("\r\n") + 2));
  const wrong = newFile();
  expect(await run(wrong, "--bbox=5")).toMatchObject({
    code: 2,
    told: expect.stringContaining("bbox must be four numbers"),
  });
  expect(existsSync(wrong)).toBe(false);
});

test("a link goes on leading to its file, which nobody else may read afterwards either; what is no file stays what it is", async () => {
  const file = newFile();
  const link = `${file}.link`;
  writeFileSync(file, "old", { mode: 0o600 });
  symlinkSync(file, link);
  expect(await run(link)).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toBe(whole);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  const pipe = `${file}.pipe`;
  execFileSync("mkfifo", [pipe]);
  for (const other of [pipe, folder]) {
    expect(await run(other)).toMatchObject({
      code: 2,
      told: `${other} is no regular file, and none can take its place\n`,
    });
  }
  expect(statSync(pipe).isFIFO()).toBe(true);
});

test("what this machine refuses is told at once, and the service is asked for nothing more", async () => {
  const file = newFile();
  const asked = (): number => line.calls.filter((call) => call === STREAM || call === JOB).length;
  const before = asked();
  expect(await run(join(file, "..", "nowhere", "x.csv"))).toMatchObject({
    code: 2,
    told: expect.stringContaining("ENOENT"),
  });
  expect(asked()).toBe(before);
  // A kilobyte at most, as on a disk that is full.
  const full = startCsvWith("ulimit -f 1", "export", ...args(file, []));
  expect(await full.ended).toMatchObject({ code: 2, told: expect.stringContaining("EFBIG") });
  expect(asked()).toBe(before + 1);
  expect(existsSync(file)).toBe(false);
  expect(beside(file)).toEqual([]);
});
