/** Tests that the console finds the same rows of a CSV file as the service. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { type CsvRow, openCsv } from "#shared/prospects/csv/read.ts";
import { rowTexts } from "../../console/src/files/row-texts.ts";

async function* inPieces(text: string, length = 7): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += length) yield text.slice(at, at + length);
}

const rowsOf = async (text: string): Promise<{ delimiter: string; rows: CsvRow[] } | undefined> => {
  try {
    const { delimiter, rows } = await openCsv(inPieces(text));
    const all: CsvRow[] = [];
    for await (const row of rows) all.push(row);
    return { delimiter, rows: all };
  } catch (error) {
    if (error instanceof BadFile) return undefined;
    throw error;
  }
};

const parts = fc.constantFrom("a", "b", '"', '""', ",", ";", "\n", "\r", "\r\n", " ");
const texts = fc.tuple(fc.constantFrom("", "sep=;\n"), fc.array(parts, { maxLength: 30 }));

test("a row has the number and the cells that the service finds, however the file is quoted and divided", async () => {
  let compared = 0;
  const property = fc.asyncProperty(texts, async ([start, list]) => {
    const text = start + list.join("");
    const file = await rowsOf(text);
    for (const { row, cells } of file?.rows ?? []) {
      const found = (await rowTexts(inPieces(text, 3), new Set([row]))).get(row);
      const again = await rowsOf(`sep=${file?.delimiter}\n${found}`);
      expect(again?.rows[0]?.cells).toEqual(cells);
      compared++;
    }
  });
  await fc.assert(property, { numRuns: 300 });
  expect(compared).toBeGreaterThan(100);
});

test("several rows are found at once, and a long row is cut", async () => {
  const text = `name\n"two\nlines",x\r\n\n${"y".repeat(1_000)}\nz`;
  expect(await rowTexts(inPieces(text), new Set([2, 4, 5]))).toEqual(
    new Map([
      [2, '"two\nlines",x'],
      [4, "y".repeat(300)],
      [5, "z"],
    ]),
  );
});
