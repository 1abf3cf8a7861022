/** Tests that a killed import is resumed and imports the file once, and that a broken or short download is repeated. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { csvExportStage, csvImportStage, DOWNLOAD, IMPORTS, ROWS } from "./csv-stage.ts";

test("the same command resumes an import that was killed while it sent and while it waited", async () => {
  const { proxy, newFile, run, start, present } = await csvImportStage();
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

test("an export repeats a broken download until the file is complete", async () => {
  const { proxy, whole, newFile, run } = await csvExportStage();
  const file = newFile();
  proxy.fail(DOWNLOAD, { answer: 503 }, { cut: "answer", after: 1_000 }, { lose: "answer" }, { shorten: 1_000 });
  const { code, stderr } = await run(file);
  expect(code, stderr).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(whole);
});
