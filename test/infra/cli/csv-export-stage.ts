/** Gives the tests of the CSV export a company with prospects. */
import { mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { uniqueName } from "../../harness/shapes.ts";
import { uploadFile } from "../../jobs/files-over-http.ts";
import { csvStage } from "./csv-stage.ts";

/** Number of exported rows. Their compressed file is a few kilobytes large, so a test can cut off the download in the middle. */
const ROWS = 600;
export const BEGIN = "POST /api/prospects/exports";
export const STATE = "GET /api/prospects/exports/";
export const DOWNLOAD = "GET /exports";

export async function csvExportStage() {
  const stage = await csvStage("export", "owner");
  const { as, folder } = stage;
  const rows = Array.from(
    { length: ROWS },
    (_, i) => `"He said ""${i}""\n,",${39 + i / 1e4},-105,${i % 3 === 0 ? "Denver" : "Golden"}\r\n`,
  );
  expect(await uploadFile(as.owner, `name,lat,lng,city\r\n${rows.join("")}`)).toMatchObject({ imported: ROWS });
  /** The text of the streamed export, with which the tests compare the files of the command. */
  const whole = (await as.owner("GET", "/api/prospects/export")).text;

  const newFile = (): string => join(mkdtempSync(join(folder, "to-")), `${uniqueName()}.csv`);
  /** Returns the names of the other files in the folder of `file`, for example of a temporary file that the command has not removed. */
  const siblings = (file: string): string[] => readdirSync(join(file, "..")).filter((name) => !file.endsWith(name));

  return { ...stage, whole, newFile, siblings };
}
