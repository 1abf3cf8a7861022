/** The empty CSV file that users fill in for an import. */
import { importColumns } from "#shared/prospects/csv/header.ts";

/** The columns of the file. `assignedToEmail` is left out, because `assignedTo` accepts an e-mail address too. */
const columns = importColumns.filter((column) => column !== "assignedToEmail");

export async function* templateText(): AsyncGenerator<string> {
  // The names of columns need no quotes. This function therefore does not load the writer of CSV files.
  yield `${columns.join(",")}\r\n`;
}
