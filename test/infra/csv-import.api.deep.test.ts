/** The command-line client over poor lines: a file is imported once, however often the command is cut off, and it says what came of it. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { at, baseUrl } from "../harness/client.ts";
import { csv, startCsv } from "../harness/csv-command.ts";
import { startPoorLine } from "../harness/poor-line.ts";
import { dataOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const line = await startPoorLine(baseUrl());
const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
afterAll(() => {
  line.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ROWS = 40;
const PLACE = "/api/prospects/imports";

/** Of a city that no other file names. Faulty rows have no place. */
function newFile({ rows = ROWS, faulty = 0 } = {}): { file: string; city: string } {
  const city = uniqueName();
  const file = join(folder, `${city}.csv`);
  const places = Array.from({ length: rows }, (_, i) => (i < faulty ? "," : `${39 + i / 1e4},-105`));
  writeFileSync(
    file,
    `name,lat,lng,city\r\n${places.map((place, i) => `"${city}\n${i}",${place},${city}\r\n`).join("")}`,
  );
  return { file, city };
}

const args = (file: string, ...more: readonly string[]) => [
  file,
  "--base",
  line.url,
  "--as",
  as.importer.email,
  ...more,
];
const run = (file: string, ...more: readonly string[]) => csv("import", ...args(file, ...more));
const start = (file: string, ...more: readonly string[]) => startCsv("import", ...args(file, ...more));

async function present(city: string): Promise<number> {
  return dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: city, pageSize: 1 } } })).total;
}

test("rows that are skipped are told and saved; the same command imports nothing twice, --again does", async () => {
  const { file, city } = newFile({ faulty: 2 });
  const errors = `${file}.errors.csv`;
  const first = await run(file, "--errors", errors);
  expect(first.said).toMatch(/^import \d+: 38 imported, 2 skipped\n {2}row 2: .+\n {2}row 3: .+\n$/);
  expect(first.code).toBe(1);
  expect(readFileSync(errors, "utf8")).toMatch(/^row,message\r\n2,.+\r\n3,.+\r\n$/);
  const begunBefore = line.calls.filter((call) => call === `POST ${PLACE}`).length;
  const second = await run(file);
  expect(second.said).toMatch(/^imported before, .*--again/);
  expect(second.code).toBe(1);
  // What stands beside the file tells it, long after the service has forgotten the request's key.
  expect(line.calls.filter((call) => call === `POST ${PLACE}`)).toHaveLength(begunBefore);
  expect(await present(city)).toBe(38);
  expect((await run(file, "--again")).said).toContain("38 imported");
  expect(await present(city)).toBe(76);
});

test("a dry run makes nothing; a mapping says which column is which; more errors than an answer holds are saved", async () => {
  const { file, city } = newFile({ rows: 130, faulty: 120 });
  const errors = `${file}.errors.csv`;
  const dry = await run(file, "--dry-run", "--errors", errors);
  expect(dry.said).toContain("10 would be imported, 120 skipped");
  expect(dry.said).toContain("and 110 more\n");
  expect(readFileSync(errors, "utf8").split("\r\n")).toHaveLength(122);
  expect(await present(city)).toBe(0);
  const other = newFile();
  const text = readFileSync(other.file, "utf8").replace("name,lat", "Who?,lat");
  writeFileSync(other.file, text);
  const mapped = await run(other.file, "--mapping", '{"Who?":"name","city":null}');
  expect(mapped).toMatchObject({ code: 0, said: expect.stringMatching(/: 40 imported, 0 skipped\n$/) });
  expect(await present(other.city)).toBe(ROWS);
});

test("an upload that breaks, and one whose answer is lost, are one import", async () => {
  const { file, city } = newFile();
  line.trouble("PUT /uploads", { cut: "request", after: 1 }, { answer: 503 }, { lose: "answer" });
  const { code, told } = await run(file);
  expect(code, told).toBe(0);
  expect(told).toContain("the file is sent once more");
  expect(await present(city)).toBe(ROWS);
});

test("answers of the service that are lost or late change nothing", async () => {
  const { file, city } = newFile();
  line.trouble(`POST ${PLACE}`, { lose: "answer" }, { answer: 503 });
  line.trouble(`GET ${PLACE}`, { answer: 502 }, { lose: "answer" });
  expect((await run(file)).code).toBe(0);
  expect(await present(city)).toBe(ROWS);
});

test("killed while it sends, and killed while it waits: the same command goes on with the same import", async () => {
  const { file, city } = newFile();
  line.trouble("PUT /uploads", { hold: "request" });
  const sending = start(file);
  await line.came("PUT /uploads");
  sending.child.kill("SIGKILL");
  await sending.ended;
  const waiting = start(file);
  await line.came("PUT /uploads");
  line.trouble(`GET ${PLACE}/`, { hold: "request" });
  await line.came(`GET ${PLACE}/`);
  waiting.child.kill("SIGKILL");
  await waiting.ended;
  const last = await run(file);
  expect(last).toMatchObject({ code: 0 });
  expect(await present(city)).toBe(ROWS);
});

test("Ctrl-C tells how to go on, and that is so", async () => {
  const { file, city } = newFile();
  line.trouble("PUT /uploads", { hold: "request" });
  const sending = start(file);
  await line.came("PUT /uploads");
  sending.child.kill("SIGINT");
  expect(await sending.ended).toMatchObject({ code: 3, told: expect.stringMatching(/import \d+ waits for its file/) });
  // The bucket seems to have it, so that the import waits for ever.
  line.trouble("PUT /uploads", { answer: 412 });
  const waiting = start(file);
  await line.came(`GET ${PLACE}/`, 3);
  waiting.child.kill("SIGINT");
  const { code, told } = await waiting.ended;
  const id = Number(/import (\d+) goes on in the service: the same command follows it/.exec(told)?.[1]);
  expect(code).toBe(3);
  // Another content of the file is not imported beside it.
  writeFileSync(file, `${readFileSync(file, "utf8")}"${city}",39,-105,${city}\r\n`);
  expect(await run(file)).toMatchObject({
    code: 2,
    told: expect.stringContaining(`import ${id} of what this file held`),
  });
  dataOf(await as.importer.POST("/api/prospects/imports/{id}/cancel", at(id)));
  expect(await run(file)).toMatchObject({ code: 0 });
  expect(await present(city)).toBe(ROWS + 1);
});

test("two commands at the same time are one import", async () => {
  const { file, city } = newFile();
  const both = await Promise.all([run(file), run(file)]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(await present(city)).toBe(ROWS);
});

test("a file that is refused can be mended, or tried again; an import that was cancelled is begun anew", async () => {
  const { file, city } = newFile();
  const text = readFileSync(file);
  writeFileSync(file, Buffer.from([0x50, 0x4b, 0x03, 0x04, 0xff, 0xfe, 0x00]));
  const [refused, again] = [await run(file), await run(file)];
  expect(refused).toMatchObject({ code: 2, told: expect.stringMatching(/import \d+ failed: .+/) });
  expect(again.told).not.toBe(refused.told);
  writeFileSync(file, text);
  line.trouble("PUT /uploads", { hold: "request" });
  const held = start(file);
  await line.came("PUT /uploads");
  held.child.kill("SIGINT");
  const id = Number(/import (\d+)/.exec((await held.ended).told)?.[1]);
  dataOf(await as.importer.POST("/api/prospects/imports/{id}/cancel", at(id)));
  expect(await run(file)).toMatchObject({ code: 0 });
  expect(await present(city)).toBe(ROWS);
});

test("problems of the service are told in its own words, wrong usage with the right one", async () => {
  const { file } = newFile();
  const base = ["--base", line.url] as const;
  const denied = await csv("import", file, ...base, "--as", as.rep.email);
  expect(denied).toMatchObject({
    code: 2,
    said: "",
    told: expect.stringMatching(/^Your role .*\(403, request .*\)\n$/),
  });
  const forged = await csv("import", file, ...base, "--token", "x");
  expect(forged).toMatchObject({ code: 2, told: expect.stringContaining("(401, request") });
  const nobody = await csv("import", file, "--base", "http://127.0.0.1:9", "--token", "x");
  expect(nobody).toMatchObject({ code: 2, told: expect.stringContaining("does not answer") });
  for (const wrong of [[], ["import"], ["import", "a", "b"], ["move", file], ["import", file, "--mapping", "x"]]) {
    const { code, told } = await csv(...wrong, ...base, "--as", as.owner.email);
    expect({ code, told }, wrong.join(" ")).toMatchObject({
      code: 2,
      told: expect.stringContaining("usage: npm run csv"),
    });
  }
});

test("a file that cannot be imported, or would be written over by its own errors, is told before anything is begun", async () => {
  const { file } = newFile({ faulty: 1 });
  const [empty, pipe, link] = [`${file}.empty`, `${file}.pipe`, `${file}.link`];
  writeFileSync(empty, "");
  execFileSync("mkfifo", [pipe]);
  symlinkSync(file, link);
  const content = readFileSync(file, "utf8");
  const begunBefore = line.calls.filter((call) => call === `POST ${PLACE}`).length;
  expect(await run(empty)).toMatchObject({ code: 2, told: `${empty} is empty\n` });
  expect(await run(pipe)).toMatchObject({ code: 2, told: expect.stringContaining("is no regular file") });
  for (const same of [file, link]) {
    expect(await run(file, "--errors", same)).toMatchObject({
      code: 2,
      told: expect.stringContaining("to be imported"),
    });
  }
  expect(readFileSync(file, "utf8")).toBe(content);
  expect(line.calls.filter((call) => call === `POST ${PLACE}`)).toHaveLength(begunBefore);
});
