/** Tests that the command that imports a CSV file imports it exactly once, even if it is killed. */
import { expect, test } from "vitest";
import { csvImportStage, IMPORTS, ROWS } from "./csv-import-stage.ts";

const { proxy, newFile, run, start, present } = await csvImportStage();

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
