/** The empty CSV file that users fill in for an import. */
import { importColumns } from "#shared/prospects/csv/format.ts";

export async function* templateText(): AsyncGenerator<string> {
  // The names of columns need no quotes. This function therefore does not load the writer of CSV files.
  yield `${importColumns.join(",")}\r\n`;
}
