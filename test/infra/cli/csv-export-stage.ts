/** Gives the tests of the CSV export a company with prospects, and a faulty connection to the service. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { baseUrl } from "../../harness/client.ts";
import { csv, startCsv } from "../../harness/csv-command.ts";
import { startFaultyProxy } from "../../harness/faulty-proxy.ts";
import { uniqueName } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { uploadFile } from "../../jobs/files-over-http.ts";

/** Number of exported rows. Their compressed file is a few kilobytes large, so a test can cut off the download in the middle. */
const ROWS = 600;
export const BEGIN = "POST /api/prospects/exports";
export const STATE = "GET /api/prospects/exports/";
export const DOWNLOAD = "GET /exports";

export async function csvExportStage() {
  const as = await newTeam();
  const proxy = await startFaultyProxy(baseUrl());
  const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
  afterAll(() => {
    proxy.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const rows = Array.from(
    { length: ROWS },
    (_, i) => `"He said ""${i}""\n,",${39 + i / 1e4},-105,${i % 3 === 0 ? "Denver" : "Golden"}\r\n`,
  );
  expect(await uploadFile(as.owner, `name,lat,lng,city\r\n${rows.join("")}`)).toMatchObject({ imported: ROWS });
  /** The text of the streamed export, with which the tests compare the files of the command. */
  const whole = (await as.owner("GET", "/api/prospects/export")).text;

  const newFile = (): string => join(mkdtempSync(join(folder, "to-")), `${uniqueName()}.csv`);
  const args = (file: string, more: readonly string[]) => [file, "--base", proxy.url, "--as", as.owner.email, ...more];
  const run = (file: string, ...more: readonly string[]) => csv("export", ...args(file, more));
  const start = (file: string, ...more: readonly string[]) => startCsv("export", ...args(file, more));
  /** Returns the names of the other files in the folder of `file`, for example of a temporary file that the command has not removed. */
  const siblings = (file: string): string[] => readdirSync(join(file, "..")).filter((name) => !file.endsWith(name));

  return { as, proxy, folder, whole, newFile, args, run, start, siblings };
}
