/** The CSV export of all matching prospects, in the order of the list. The file is never completely in memory. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { at } from "#shared/at.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import { inOrder, type ProspectRef } from "#shared/company-index/search/page.ts";
import type { ReadContext } from "#shared/context.ts";
import { blockOf } from "#shared/db/keys.ts";
import { type ExportRow, exportRows, type Wanted } from "#shared/prospects/csv/export-rows.ts";
import { type Column, columnsIn, type FileForm, TAG_SEPARATOR } from "#shared/prospects/csv/format.ts";
import { csvText, decimal } from "#shared/prospects/csv/write.ts";
import type { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { isVisible } from "#shared/prospects/read.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { fullName } from "#shared/reference/users.ts";

/** Ids and versions of prospects in the order of the file. Typed arrays for a million prospects need 16 MB, less than objects. */
export interface Order {
  readonly ids: Float64Array;
  readonly versions: Float64Array;
}

export interface Selection {
  readonly dictionary: Dictionary;
  readonly order: Order;
}

export async function selectProspects(
  context: ReadContext,
  caller: Caller,
  filter: ProspectFilter,
): Promise<Selection> {
  const { names, matches } = await findFiltered(context, caller, filter);
  return { dictionary: names, order: orderOf(inOrder(matches), matches.total) };
}

function orderOf(matches: Iterable<ProspectRef>, total: number): Order {
  const ids = new Float64Array(total);
  const versions = new Float64Array(total);
  let size = 0;
  for (const { id, version } of matches) {
    ids[size] = id;
    versions[size++] = version;
  }
  return { ids: ids.subarray(0, size), versions: versions.subarray(0, size) };
}

/** Encodes each id as the difference from the id before, because neighbours in a list usually have similar ids. */
export function encodeOrder({ ids, versions }: Order): Uint8Array {
  const into = new ByteWriter();
  into.integer(ids.length);
  let last = 0;
  for (const [i, id] of ids.entries()) {
    into.signed(id - last);
    into.integer(at(versions, i));
    last = id;
  }
  return zstdCompressSync(into.finish());
}

export function decodeOrder(bytes: Uint8Array): Order {
  const from = new ByteReader(zstdDecompressSync(bytes));
  const count = from.integer();
  const [ids, versions] = [new Float64Array(count), new Float64Array(count)];
  let last = 0;
  for (let i = 0; i < count; i++) {
    last += from.signed();
    ids[i] = last;
    versions[i] = from.integer();
  }
  return { ids, versions };
}

/** The file shows each prospect as it is when its batch is read, without prospects that the caller does not see any more. */
export async function exportProspects(
  context: ReadContext,
  caller: Caller,
  filter: ProspectFilter,
  form: FileForm = {},
): Promise<AsyncIterable<string>> {
  return texts(exportPieces(context, caller, await selectProspects(context, caller, filter), form));
}

async function* texts(pieces: AsyncIterable<Piece>): AsyncGenerator<string> {
  for await (const { text } of pieces) yield text;
}

export interface Piece {
  readonly text: string;
  /** Number of prospects of this piece, including those that `text` lacks. A resumed export begins after them. */
  readonly prospects: number;
}

/** Begins at the position `from` in `order`, and writes the header if this is 0. Reads the next batch while the caller handles a piece. */
export async function* exportPieces(
  context: ReadContext,
  caller: Caller,
  { dictionary, order }: Selection,
  form: FileForm,
  from = 0,
): AsyncGenerator<Piece> {
  const columns = columnsIn(form);
  const isWhole = columns.includes("customFieldData");
  const rowsOf = exportRows(context.table, caller.companyId, countsByBlock(order, from), isWhole);
  const batches = batchesOf(order, from);
  const readNext = (): Promise<(ExportRow | undefined)[]> | undefined => {
    const next = batches.next();
    const rows = next.done === true ? undefined : rowsOf(next.value);
    // If the caller stops early, nobody awaits these rows, and a failed read would be an unhandled rejection.
    rows?.catch(() => undefined);
    return rows;
  };
  let text = from === 0 ? `${form.bom === true ? "\uFEFF" : ""}${csvText([columns])}` : "";
  for (let reading = readNext(); reading !== undefined; ) {
    const rows = await reading;
    reading = readNext();
    const visible = rows.flatMap((row) => (row !== undefined && isVisible(caller, row.prospect) ? [row] : []));
    yield { text: text + csvText(visible.map((row) => cellsOf(row, dictionary, columns))), prospects: rows.length };
    text = "";
  }
  if (text !== "") yield { text, prospects: 0 };
}

const BATCH = 500;

function* batchesOf({ ids, versions }: Order, from: number): Generator<Wanted[], undefined> {
  for (let first = from; first < ids.length; first += BATCH) {
    yield Array.from(ids.subarray(first, first + BATCH), (id, i) => ({ id, version: at(versions, first + i) }));
  }
  return undefined;
}

function countsByBlock({ ids }: Order, from: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (const id of ids.subarray(from)) counts.set(blockOf(id), (counts.get(blockOf(id)) ?? 0) + 1);
  return counts;
}

function cellsOf(
  { prospect, note }: ExportRow,
  { statuses, tags, users }: Dictionary,
  columns: readonly Column[],
): string[] {
  const { address, statusId, assignedToUserId, tagIds, lat, lng } = prospect;
  const assignee = assignedToUserId === null ? undefined : users.get(assignedToUserId);
  const author = users.get(prospect.createdBy);
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
    createdBy: author === undefined ? null : fullName(author),
    source: prospect.source,
    createdAt: prospect.createdAt,
    sourceId: prospect.sourceId,
    secondaryPhoneNumber: prospect.secondaryPhoneNumber,
    updatedAt: prospect.updatedAt,
    customFieldData: prospect.customFieldData,
  };
  return columns.map((column) => cells[column] ?? "");
}
