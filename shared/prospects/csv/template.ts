/** The empty file that users fill in for an import. */
import { importColumns } from "#shared/prospects/csv/header.ts";
import { csvText } from "#shared/prospects/csv/write.ts";

/** `assignedTo` accepts an e-mail address too, so the template needs one of the two columns. */
const columns = importColumns.filter((column) => column !== "assignedToEmail");

export async function* templateText(): AsyncGenerator<string> {
  yield csvText([columns]);
}
