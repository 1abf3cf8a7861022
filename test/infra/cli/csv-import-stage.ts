/** Gives the tests of the CSV import files with rows. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { dataOf, uniqueName } from "../../harness/shapes.ts";
import { csvStage } from "./csv-stage.ts";

/** Number of rows of a file, unless the test says another. */
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
