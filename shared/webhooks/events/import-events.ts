/** Old and new row of an import -> that it is completed, once for the whole file; a dry run is no import. */
import * as z from "zod/mini";
import { unpacked } from "#shared/db/packed.ts";
import { RowFault, StoredImport } from "#shared/jobs/import/schema.ts";
import { type DomainEvent, eventOf } from "#shared/webhooks/events/catalogue.ts";

/** A delivery is one row of the table, and so is its body: of more errors the first are told, and all of them by the import itself. */
const ERRORS_TOLD = 100;

/** The stream's records write bytes as base64. */
const Bytes = z.union([
  z.instanceof(Uint8Array),
  z.pipe(
    z.string(),
    z.transform((base64) => Buffer.from(base64, "base64")),
  ),
]);
const ImportRow = z.extend(StoredImport, { errors: Bytes });
const State = z.object({ state: z.string() });

export function importEvents(before: unknown, after: unknown): DomainEvent[] {
  const row = ImportRow.parse(after);
  const was = before === undefined ? undefined : State.parse(before).state;
  if (row.state !== "completed" || was === "completed" || row.dryRun === true) return [];
  const { id, imported, skipped } = row;
  const errors = unpacked(z.array(RowFault), row.errors).slice(0, ERRORS_TOLD);
  return [eventOf(row, "prospect.import_completed", { id, imported, skipped, errors })];
}
