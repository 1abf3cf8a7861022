/** The empty file that users fill in for an import. */
import { importColumns } from "#shared/prospects/csv/header.ts";
import { csvText } from "#shared/prospects/csv/write.ts";

/** Omits `assignedToEmail`, because `assignedTo` accepts an e-mail address too. */
const columns = importColumns.filter((column) => column !== "assignedToEmail");

export async function* templateText(): AsyncGenerator<string> {
  yield csvText([columns]);
}
