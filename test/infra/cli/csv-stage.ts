/** Gives the tests of the CSV commands a company, a folder for files, and a faulty connection to the service. */
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { baseUrl } from "../../harness/client.ts";
import { startFaultyProxy } from "../../harness/faulty-proxy.ts";
import { type Ended, type Running, startProcess } from "../../harness/process.ts";
import { dataOf, uniqueName } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { uploadFile } from "../../jobs/files-over-http.ts";

const environment = { ...process.env, TOKEN: undefined };

/** Starts the CSV command after the shell command `first`, for example a `ulimit` that limits its resources. */
export const startCsv = (args: readonly string[], first = ":"): Running =>
  startProcess("sh", ["-c", `${first}; exec "$0" "$@"`, process.execPath, "infra/cli/csv.ts", ...args], environment);

/** Starts the CSV command by npm, in a process group of its own, as a terminal does. */
export const startNpmCsv = (...args: readonly string[]): Running =>
  startProcess("npm", ["run", "--silent", "csv", "--", ...args], environment, true);

export const csv = (...args: readonly string[]): Promise<Ended> => startCsv(args).ended;

/** What a command returns that ends with this exit code and prints this text on stderr. */
export const failure = (code: number, text: string) => ({ code, stderr: expect.stringContaining(text) });

/** Creates a company and a folder for files. The returned functions `run` and `start` execute the CSV command `name` as the user `user`. */
async function csvStage(name: "export" | "import", user: "owner" | "importer") {
  const as = await newTeam();
  const proxy = await startFaultyProxy(baseUrl());
  const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
  afterAll(() => proxy.stop());

  const access = ["--base", proxy.url, "--as", as[user].email];
  const args = (file: string, ...more: readonly string[]) => [file, ...access, ...more];
  const run = (file: string, ...more: readonly string[]) => csv(name, ...args(file, ...more));
  const start = (file: string, ...more: readonly string[]) => startCsv([name, ...args(file, ...more)]);

  return { as, proxy, folder, args, run, start };
}

/** Number of exported rows. Their compressed file is a few kilobytes large, so a test can cut off the download in the middle. */
const EXPORTED_ROWS = 600;
export const BEGIN = "POST /api/prospects/exports";
export const STATE = "GET /api/prospects/exports/";
export const DOWNLOAD = "GET /exports";

export async function csvExportStage() {
  const stage = await csvStage("export", "owner");
  const { as, folder } = stage;
  const rows = Array.from(
    { length: EXPORTED_ROWS },
    (_, i) => `"He said ""${i}""\n,",${39 + i / 1e4},-105,${i % 3 === 0 ? "Denver" : "Golden"}\r\n`,
  );
  expect(await uploadFile(as.owner, `name,lat,lng,city\r\n${rows.join("")}`)).toMatchObject({
    imported: EXPORTED_ROWS,
  });
  /** The text of the streamed export, with which the tests compare the files of the command. */
  const whole = (await as.owner("GET", "/api/prospects/export")).text;

  const newFile = (): string => join(mkdtempSync(join(folder, "to-")), `${uniqueName()}.csv`);
  /** Returns the names of the other files in the folder of `file`, for example of a temporary file that the command has not removed. */
  const siblings = (file: string): string[] => readdirSync(join(file, "..")).filter((name) => !file.endsWith(name));

  return { ...stage, whole, newFile, siblings };
}

/** Number of rows of a file, unless the test gives another number. */
export const ROWS = 40;

export const IMPORTS = "/api/prospects/imports";

export async function csvImportStage() {
  const stage = await csvStage("import", "importer");
  const { as, folder } = stage;

  /**
   * Writes a CSV file. All its rows have the same city, and no other file contains this city, so that a test can count the imported rows.
   * The first `faulty` rows have no coordinates.
   */
  function newFile({ rows = ROWS, faulty = 0 } = {}): { file: string; city: string } {
    const city = uniqueName();
    const file = join(folder, `${city}.csv`);
    const points = Array.from({ length: rows }, (_, i) => (i < faulty ? "," : `${39 + i / 1e4},-105`));
    writeFileSync(
      file,
      `name,lat,lng,city\r\n${points.map((point, i) => `"${city}\n${i}",${point},${city}\r\n`).join("")}`,
    );
    return { file, city };
  }

  async function present(city: string): Promise<number> {
    return dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: city, pageSize: 1 } } })).total;
  }

  return { ...stage, newFile, present };
}
