/** Tests the command that imports a CSV file, over a faulty connection. However often the command is killed, the file is imported once. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { at } from "../../harness/client.ts";
import { pressCtrlC } from "../../harness/process.ts";
import { dataOf, uniqueName } from "../../harness/shapes.ts";
import { csv, csvImportStage, failure, IMPORTS, ROWS, startNpmCsv } from "./csv-stage.ts";

const { as, proxy, folder, newFile, args, run, start, present } = await csvImportStage();

test("the same file with other options or by another user is another import, and with the same options it is the same import", async () => {
  const { file, city } = newFile({ rows: 2 });
  const mapped = ["--mapping", "city=", "--mapping", "name=name"] as const;
  const turned = ["--mapping", "name=name", "--mapping", "city="] as const;
  const byOwner = () => csv("import", file, "--base", proxy.url, "--as", as.owner.email);
  for (const work of [() => run(file), byOwner]) {
    expect(await work()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^import \d+: 2 imported/) });
  }
  const ignoring = await run(file, ...mapped);
  expect(ignoring.stdout).toMatch(/^import \d+: 2 imported, 0 skipped\n {2}not read: city\n$/);
  for (const work of [() => run(file), byOwner, () => run(file, ...mapped), () => run(file, ...turned)]) {
    expect(await work()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^imported before, /) });
  }
  // The third import has ignored the column `city`. The search finds its prospects by their name, which contains the same word.
  expect(await present(city)).toBe(6);
});

test("a dry run of a file of which no header is known fails and names the headers", async () => {
  const file = join(folder, `${uniqueName()}.csv`);
  writeFileSync(file, "foo,bar\n1,2\n");
  const { code, stdout, stderr } = await run(file, "--dry-run");
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain('the service knows none of the columns: foo, bar. Name them with --mapping "HEADER=COLUMN"');
});

test("a dry run writes nothing; --errors saves more errors than one answer lists", async () => {
  const { file, city } = newFile({ rows: 130, faulty: 120 });
  const errors = `${file}.errors.csv`;
  const dry = await run(file, "--dry-run", "--errors", errors);
  expect(dry.stdout).toContain("10 would be imported, 120 skipped");
  expect(dry.stdout).toContain("and 110 more");
  expect(readFileSync(errors, "utf8").split("\r\n")).toHaveLength(122);
  expect(await present(city)).toBe(0);
});

test("a broken upload and a lost answer of the bucket lead to one import", async () => {
  const { file, city } = newFile();
  proxy.fail("PUT /uploads", { cut: "request", after: 1 }, { answer: 503 }, { lose: "answer" });
  const { code, stderr } = await run(file);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("trying again");
  expect(await present(city)).toBe(ROWS);
});

test("Ctrl-C explains how to resume, and the command behaves as explained", async () => {
  const { file, city } = newFile();
  proxy.fail("PUT /uploads", { hold: "request" });
  const sending = start(file);
  await proxy.received("PUT /uploads");
  sending.child.kill("SIGINT");
  expect(await sending.ended).toMatchObject(failure(3, "interrupted: run the same command to resume"));
  // A bucket answers 412 if it already has the file. The command then waits until the service has imported the file.
  proxy.fail("PUT /uploads", { answer: 412 });
  const waiting = start(file);
  await proxy.received(`GET ${IMPORTS}/`, 3);
  waiting.child.kill("SIGINT");
  const { code, stderr } = await waiting.ended;
  const id = Number(/^import (\d+)$/m.exec(stderr)?.[1]);
  expect(code).toBe(3);
  // The command does not resume a cancelled import, but begins a new one.
  dataOf(await as.importer.POST("/api/prospects/imports/{id}/cancel", at(id)));
  expect(await run(file)).toMatchObject({ code: 0 });
  expect(await present(city)).toBe(ROWS);
});

test("Ctrl-C in a terminal, which npm and the command both get, ends the command once, with its own exit code", async () => {
  const { file } = newFile();
  proxy.fail("PUT /uploads", { hold: "request" });
  const sending = startNpmCsv("import", ...args(file));
  await proxy.received("PUT /uploads");
  // The terminal signals npm and the command. npm also forwards its signal, so the command gets the signal twice.
  pressCtrlC(sending);
  const { code, stderr } = await sending.ended;
  expect(code, stderr).toBe(3);
  expect(stderr).toMatch(/interrupted: run the same command to resume\n$/);
  expect(stderr).not.toContain("    at ");
});

test("two commands at the same time lead to one import", async () => {
  const { file, city } = newFile();
  const both = await Promise.all([run(file), run(file)]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(await present(city)).toBe(ROWS);
});

test("a failed import does not block the next one", async () => {
  const { file, city } = newFile();
  const text = readFileSync(file);
  writeFileSync(file, Buffer.from([0x50, 0x4b, 0x03, 0x04, 0xff, 0xfe, 0x00]));
  const [refused, again] = [await run(file), await run(file)];
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/import \d+ failed: .+/) });
  expect(again.stderr).not.toBe(refused.stderr);
  writeFileSync(file, text);
  expect(await run(file)).toMatchObject({ code: 0 });
  expect(await present(city)).toBe(ROWS);
});

test("prints the problem details of the service, or that it does not answer", async () => {
  const { file } = newFile();
  const base = ["--base", proxy.url] as const;
  const denied = await csv("import", file, ...base, "--as", as.rep.email);
  expect(denied).toMatchObject({ code: 1, stdout: "" });
  expect(denied.stderr).toMatch(
    /^target: service at \S+\nYou lack the permission canManageProspects.*\(403, request .*\)\n$/,
  );
  const forged = await csv("import", file, ...base, "--token", "x");
  expect(forged).toMatchObject({ code: 1, stderr: expect.stringContaining("(401, request") });
  const nobody = await csv("import", file, "--base", "http://127.0.0.1:9", "--token", "x");
  expect(nobody).toMatchObject(failure(3, "does not answer"));
});

test("refuses an empty file, a pipe, and an error file that is the imported file, before it begins an import", async () => {
  const { file } = newFile({ faulty: 1 });
  const [empty, pipe, link] = [`${file}.empty`, `${file}.pipe`, `${file}.link`];
  writeFileSync(empty, "");
  execFileSync("mkfifo", [pipe]);
  symlinkSync(file, link);
  const content = readFileSync(file, "utf8");
  const begunBefore = proxy.calls.filter((call) => call === `POST ${IMPORTS}`).length;
  expect(await run(empty)).toMatchObject(failure(1, `\n${empty} is empty\n`));
  expect(await run(pipe)).toMatchObject(failure(1, "is not a regular file"));
  for (const same of [file, link]) {
    expect(await run(file, "--errors", same)).toMatchObject(failure(1, "is the file to be imported"));
  }
  expect(readFileSync(file, "utf8")).toBe(content);
  expect(proxy.calls.filter((call) => call === `POST ${IMPORTS}`)).toHaveLength(begunBefore);
});

test("the commands of the document work in their order, and the second import updates what the first one exported", async () => {
  const place = mkdtempSync(join(folder, "docs-"));
  await run(newFile().file);
  const text = readFileSync(join(import.meta.dirname, "../../../docs/csv.md"), "utf8");
  const commands = [...text.matchAll(/^npm run csv -- (.+)$/gm)].map(([, command = ""]) => command);
  expect(commands.length).toBeGreaterThan(2);
  for (const command of commands) {
    // The commands in the document contain a user of the demo data. The test replaces this user by its own owner.
    const words = command.replace("owner@acme.test", as.owner.email).replace("new.csv", join(place, "new.csv"));
    const { code, stdout, stderr } = await csv(...words.split(" "), "--base", proxy.url);
    expect({ code, stderr }, command).toMatchObject({ code: 0 });
    expect(stdout).toMatch(
      /prospects\n$|^(?:dry run|import) \d+: 0 (?:would be )?imported, [\d,]+ (?:would be )?updated, 0 skipped/,
    );
  }
});

test("--mapping takes headers, --match-by updates, and the result names what was not read", async () => {
  const { file, city } = newFile({ rows: 3 });
  writeFileSync(file, readFileSync(file, "utf8").replace("name,lat,lng,city", "Who=is it,lat,lng,Town"));
  const first = await run(file, "--mapping", "Who=is it=name", "--mapping", "town=CITY");
  expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/: 3 imported, 0 skipped\n$/) });
  expect(await present(city)).toBe(3);
  const keyed = `${file}.keyed.csv`;
  writeFileSync(keyed, Buffer.from(`sourceId;name;lat;lng;Farbe\n${city};${city} Zoë;39,5;-105;rot\n`, "latin1"));
  const options = ["--match-by", "sourceId", "--on-match", "update"] as const;
  expect((await run(keyed, ...options)).stdout).toMatch(
    /: 1 imported, 0 updated, 0 skipped\n {2}read as windows-1252\n {2}not read: Farbe\n$/,
  );
  expect((await run(keyed, "--again", ...options)).stdout).toMatch(/: 0 imported, 1 updated, 0 skipped\n/);
  expect((await run(keyed, ...options, "--dry-run")).stdout).toMatch(
    /: 0 would be imported, 1 would be updated, 0 skipped\n/,
  );
});

test("a missing file is reported in one line", async () => {
  const stderr = `target: service at ${proxy.url}\nENOENT: no such file or directory, stat '/nowhere/a.csv'\n`;
  expect(await run("/nowhere/a.csv")).toEqual({ code: 1, stdout: "", stderr });
});

test("wrong options are explained in sentences, and --help prints the options and columns", async () => {
  const { file } = newFile();
  for (const [wrong, sentence] of [
    [["--mapping", "Who=nam"], "--mapping: there is no column nam. The columns are id, name, phone"],
    [["--mapping", "Who"], '--mapping: write "HEADER=COLUMN" and not "Who"'],
    [["--match-by", "id"], "--match-by and --on-match belong together"],
    [
      ["--match-by", "name", "--on-match", "update"],
      '--match-by: must be id, sourceId or emailAddress, and not "name"',
    ],
  ] as const) {
    expect(await run(file, ...wrong)).toMatchObject(failure(2, sentence));
  }
  const help = await csv("--help");
  expect(help).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("sourceId") });
  const [, columns = ""] = /The columns of a file, in any order: (.+)\.\n/.exec(help.stdout) ?? [];
  const template = await as.owner("GET", "/api/prospects/import/template.csv");
  expect(columns.replaceAll(", ", ",")).toBe(template.text.trimEnd());
});

test("lost answers and 5xx answers do not change the result, and the command says that it repeats them", async () => {
  const { file, city } = newFile();
  proxy.fail(`POST ${IMPORTS}`, { lose: "answer" }, { answer: 503 });
  proxy.fail(`GET ${IMPORTS}/`, { answer: 502 }, { lose: "answer" });
  const { code, stderr } = await run(file);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("trying again in 2 s, Ctrl-C ends the command\n");
  expect(await present(city)).toBe(ROWS);
});

test("reports and saves the errors of skipped rows; the same command imports the file again only with --again", async () => {
  const { file, city } = newFile({ faulty: 2 });
  const errors = `${file}.errors.csv`;
  const first = await run(file, "--errors", errors);
  expect(first.stdout).toMatch(/^import \d+: 38 imported, 2 skipped\n {2}row 2: .+\n {2}row 3: .+\n$/);
  expect(first.code).toBe(1);
  expect(readFileSync(errors, "utf8")).toMatch(/^row,message\r\n2,.+\r\n3,.+\r\n$/);
  const second = await run(file);
  expect(second.stdout).toMatch(/^imported before, .*--again/);
  expect(second.code).toBe(1);
  expect(await present(city)).toBe(38);
  expect((await run(file, "--again")).stdout).toContain("38 imported");
  expect(await present(city)).toBe(76);
});
