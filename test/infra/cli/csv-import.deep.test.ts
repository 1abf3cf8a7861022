/**
 * Tests the command that imports a CSV file. It reports faulty rows. It imports the file exactly once, even if it is killed or answers are
 * lost.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { csvImportStage, IMPORTS, ROWS } from "./csv-import-stage.ts";

const { proxy, newFile, run, start, present } = await csvImportStage();

test("reports and saves the errors of skipped rows; the same command imports the file again only with --again", async () => {
  const { file, city } = newFile({ faulty: 2 });
  const errors = `${file}.errors.csv`;
  const first = await run(file, "--errors", errors);
  expect(first.stdout).toMatch(
    /^import \d+: 38 imported, 2 skipped\n {2}row 2: .+\n {2}row 3: .+\n {2}the other rows .+\n$/,
  );
  expect(first.code).toBe(1);
  expect(readFileSync(errors, "utf8")).toMatch(/^row,message\r\n2,.+\r\n3,.+\r\n$/);
  const begunBefore = proxy.calls.filter((call) => call === `POST ${IMPORTS}`).length;
  const second = await run(file);
  expect(second.stdout).toMatch(/^imported before, .*--again/);
  expect(second.code).toBe(1);
  // The command has stored the result in its journal (its progress file). It therefore does not begin a second import, even after the
  // idempotency key has expired.
  expect(proxy.calls.filter((call) => call === `POST ${IMPORTS}`)).toHaveLength(begunBefore);
  expect(await present(city)).toBe(38);
  expect((await run(file, "--again")).stdout).toContain("38 imported");
  expect(await present(city)).toBe(76);
});

test("lost answers and 5xx answers of the service do not change the result", async () => {
  const { file, city } = newFile();
  proxy.fail(`POST ${IMPORTS}`, { lose: "answer" }, { answer: 503 });
  proxy.fail(`GET ${IMPORTS}`, { answer: 502 }, { lose: "answer" });
  expect((await run(file)).code).toBe(0);
  expect(await present(city)).toBe(ROWS);
});

test("the same command resumes an import that was killed while it sent and while it waited", async () => {
  const { file, city } = newFile();
  proxy.fail("PUT /uploads", { hold: "request" });
  const sending = start(file);
  await proxy.received("PUT /uploads");
  sending.child.kill("SIGKILL");
  await sending.ended;
  const waiting = start(file);
  await proxy.received("PUT /uploads");
  proxy.fail(`GET ${IMPORTS}/`, { hold: "request" });
  await proxy.received(`GET ${IMPORTS}/`);
  waiting.child.kill("SIGKILL");
  await waiting.ended;
  const last = await run(file);
  expect(last).toMatchObject({ code: 0 });
  expect(await present(city)).toBe(ROWS);
});
