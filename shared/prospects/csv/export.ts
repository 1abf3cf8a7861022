/** The CSV export: every match of the filters, in list order, in memory that does not grow with their number. */
import type { Caller } from "#shared/auth/caller.ts";
import { inOrder } from "#shared/company-index/search/page.ts";
import type { ApiContext } from "#shared/context.ts";
import { limits } from "#shared/limits.ts";
import { type Column, exportColumns, TAG_SEPARATOR } from "#shared/prospects/csv/columns.ts";
import { countsByBlock, type Order, orderOf, placesFrom } from "#shared/prospects/csv/export-order.ts";
import { type ExportRow, exportRows, type Wanted } from "#shared/prospects/csv/export-rows.ts";
import { csvText, decimal } from "#shared/prospects/csv/write.ts";
import { criteriaOf, type ProspectFilter, searching } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { isVisible } from "#shared/prospects/read.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { fullName } from "#shared/reference/users.ts";

/** What is decided when an export begins. */
export interface Chosen {
  readonly dictionary: Dictionary;
  readonly order: Order;
}

export async function chooseProspects(context: ApiContext, caller: Caller, filter: ProspectFilter): Promise<Chosen> {
  const { names, matches } = await findProspects(
    context,
    caller.companyId,
    (dictionary) => criteriaOf(filter, caller, dictionary),
    searching(filter),
  );
  return { dictionary: names, order: orderOf(inOrder(matches), matches.total) };
}

/**
 * Which prospects are in the file is decided when the export begins. Each is written as it is when its turn comes: what was changed
 * meanwhile as it is then, and what the caller may not see any more is left out. Names are those of the beginning.
 */
export async function exportProspects(
  context: ApiContext,
  caller: Caller,
  filter: ProspectFilter,
): Promise<AsyncIterable<string>> {
  return texts(exportPieces(context, caller, await chooseProspects(context, caller, filter)));
}

async function* texts(pieces: AsyncIterable<Piece>): AsyncGenerator<string> {
  for await (const { text } of pieces) yield text;
}

export interface Piece {
  readonly text: string;
  /** How many of the chosen prospects it is made of. */
  readonly places: number;
}

/**
 * From this place on; from the first, the header first. Then batch after batch: one is being read while the one before it is written.
 */
export async function* exportPieces(
  context: ApiContext,
  caller: Caller,
  { dictionary, order }: Chosen,
  from = 0,
): AsyncGenerator<Piece> {
  const rowsOf = exportRows(context.table, caller.companyId, countsByBlock(order, from));
  const batches = batchesOf(placesFrom(order, from));
  const readNext = (): Promise<(ExportRow | undefined)[]> | undefined => {
    const next = batches.next();
    const rows = next.done === true ? undefined : rowsOf(next.value);
    // Thrown where it is awaited, and nowhere if nobody does any more.
    rows?.catch(() => undefined);
    return rows;
  };
  let text = from === 0 ? csvText([exportColumns]) : "";
  for (let reading = readNext(); reading !== undefined; ) {
    const rows = await reading;
    reading = readNext();
    const seen = rows.flatMap((row) => (row !== undefined && isVisible(caller, row.prospect) ? [row] : []));
    yield { text: text + csvText(seen.map((row) => cellsOf(row, dictionary))), places: rows.length };
    text = "";
  }
  if (text !== "") yield { text, places: 0 };
}

function* batchesOf(places: Iterable<Wanted>): Generator<Wanted[], undefined> {
  let batch: Wanted[] = [];
  for (const place of places) {
    batch.push(place);
    if (batch.length < limits.exportBatch) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
  return undefined;
}

function cellsOf({ prospect, note }: ExportRow, { statuses, tags, users }: Dictionary): string[] {
  const { address, statusId, assignedToUserId, tagIds, lat, lng } = prospect;
  const assignee = assignedToUserId === null ? undefined : users.get(assignedToUserId);
  const maker = users.get(prospect.createdBy);
  const cells: Record<Column, string | null | undefined> = {
    id: String(prospect.id),
    name: prospect.name,
    phone: prospect.phoneNumber,
    email: prospect.emailAddress,
    lat: lat === null ? null : decimal(lat),
    lng: lng === null ? null : decimal(lng),
    address1: address?.address1,
    address2: address?.address2,
    city: address?.city,
    state: address?.state,
    zip: address?.zip,
    status: statusId === null ? null : statuses.get(statusId)?.value,
    assignedTo: assignee === undefined ? null : fullName(assignee),
    assignedToEmail: assignee?.email,
    tags: tagIds.flatMap((id) => tags.get(id)?.value ?? []).join(TAG_SEPARATOR),
    notes: note?.body,
    createdBy: maker === undefined ? null : fullName(maker),
    source: prospect.source,
    createdAt: prospect.createdAt,
  };
  return exportColumns.map((column) => cells[column] ?? "");
}
