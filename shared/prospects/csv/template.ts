/** The CSV file that users fill in for an import. It contains only the header row. */
import { importColumns } from "#shared/prospects/csv/format.ts";

export async function* templateText(): AsyncGenerator<string> {
  // The names of columns need no quotes. They are therefore joined here, and the CSV library need not be loaded.
  yield `${importColumns.join(",")}\r\n`;
}
