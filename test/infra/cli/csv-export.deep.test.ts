/** Tests that the command that exports a CSV file repeats a download that breaks, or that is too short but ends regularly. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { csvExportStage, DOWNLOAD } from "./csv-export-stage.ts";

const { proxy, whole, newFile, run } = await csvExportStage();

test("repeats a broken download until the file is complete", async () => {
  const file = newFile();
  proxy.fail(DOWNLOAD, { answer: 503 }, { cut: "answer", after: 1_000 }, { lose: "answer" }, { shorten: 1_000 });
  const { code, stderr } = await run(file);
  expect(code, stderr).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(whole);
});
