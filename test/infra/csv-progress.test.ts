/** What the command-line client shows while it works, and how it knows the end of a CSV file. */
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { csvText } from "#shared/prospects/csv/write.ts";
import { lineOf, openProgress, type Step } from "../../infra/cli/csv/progress.ts";
import { RowCounter } from "../../infra/cli/csv/rows.ts";

const step: Step = { name: "writing", done: 30_000, total: 120_000, unit: "rows", errors: 1_234 };

test("a terminal gets one line that is written over, anything else plain ones", () => {
  const shown = (isTTY: boolean): string => {
    let all = "";
    const progress = openProgress({ isTTY, columns: 60, write: (part: string) => (all += part) });
    progress.show({ ...step, name: "checking" });
    progress.show({ ...step, name: "checking" });
    progress.show(step);
    progress.say("a word");
    progress.end();
    return all;
  };
  expect(shown(false)).toBe(
    "checking  25 %, 30,000 of 120,000 rows, 1,234 errors\nwriting  25 %, 30,000 of 120,000 rows, 1,234 errors\na word\n",
  );
  const erase = "\r\u001B[K";
  const drawn = "[######..................] 25 %, 30,000 of 120,000 rows, 1,234 errors";
  const [first, second] = [`checking ${drawn}`, `writing ${drawn}`].map((line) => line.slice(0, 59));
  expect(shown(true)).toBe(`${erase}${first}${erase}${second}${erase}a word\n${erase}`);
});

test("a rate has the unit of what goes on", () => {
  expect(lineOf(step, 1_500, false)).toBe("writing  25 %, 30,000 of 120,000 rows, 1,500 rows/s, 1,234 errors");
  const bytes = { name: "sending", done: 1_500_000, total: 3_000_000, unit: "bytes" } as const;
  expect(lineOf(bytes, 250_000, false)).toBe("sending  50 %, 1.5 MB of 3.0 MB, 0.3 MB/s");
  expect(lineOf({ name: "checking", done: 5, unit: "rows" }, undefined, true)).toBe("checking 5 rows");
});

const cell = fc.string({ unit: fc.constantFrom('"', "\n", "\r", ",", "a", "é") });

test("rows are counted whatever cells hold and wherever the text is cut; only between rows may it end", async () => {
  const rows = fc.array(fc.array(cell, { minLength: 2, maxLength: 3 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(rows, fc.integer({ min: 1, max: 7 }), fc.nat(), async (table, size, end) => {
      const bytes = Buffer.from(csvText(table));
      const through = async (part: Buffer): Promise<number> => {
        const counter = new RowCounter(() => undefined);
        const chunks = Array.from({ length: Math.ceil(part.length / size) }, (_, i) =>
          part.subarray(i * size, (i + 1) * size),
        );
        await pipeline(Readable.from(chunks), counter, text);
        return counter.rows;
      };
      expect(await through(bytes)).toBe(table.length - 1);
      const part = bytes.subarray(0, end % bytes.length);
      const isBetweenRows = table.some((_, i) => part.equals(Buffer.from(csvText(table.slice(0, i + 1)))));
      if (!isBetweenRows) await expect(through(part)).rejects.toThrow("ends within a row");
    }),
  );
});
