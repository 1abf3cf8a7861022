/** Gives the tests of the CSV import a company, files, and a faulty connection to the service. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { baseUrl } from "../../harness/client.ts";
import { csv, startCsv } from "../../harness/csv-command.ts";
import { startFaultyProxy } from "../../harness/faulty-proxy.ts";
import { dataOf, uniqueName } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";

/** Number of rows of a file, unless the test says another. */
export const ROWS = 40;

export const IMPORTS = "/api/prospects/imports";

export async function csvImportStage() {
  const as = await newTeam();
  const proxy = await startFaultyProxy(baseUrl());
  const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
  afterAll(() => {
    proxy.stop();
    rmSync(folder, { recursive: true, force: true });
  });

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

  const args = (file: string, ...more: readonly string[]) => [
    file,
    "--base",
    proxy.url,
    "--as",
    as.importer.email,
    ...more,
  ];
  const run = (file: string, ...more: readonly string[]) => csv("import", ...args(file, ...more));
  const start = (file: string, ...more: readonly string[]) => startCsv("import", ...args(file, ...more));

  async function present(city: string): Promise<number> {
    return dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: city, pageSize: 1 } } })).total;
  }

  return { as, proxy, folder, newFile, args, run, start, present };
}
