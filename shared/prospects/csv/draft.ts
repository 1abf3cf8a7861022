/** A row of an imported file -> what will become of it: a prospect with its note, or the reason why not. */
import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";
import { folded } from "#shared/caseless.ts";
import { limits } from "#shared/limits.ts";
import { NewAddress } from "#shared/prospects/address.ts";
import { type Column, TAG_SEPARATOR } from "#shared/prospects/csv/columns.ts";
import { unguarded } from "#shared/prospects/csv/formula.ts";
import type { Header } from "#shared/prospects/csv/header.ts";
import { DisplayValue, degrees, Email, Id, text } from "#shared/schema.ts";

z.config(en());

/** What status and assignee of a row are looked up in, by folded value and e-mail address. */
export interface Names {
  readonly statuses: ReadonlyMap<string, number>;
  readonly users: ReadonlyMap<string, number>;
}

export const Draft = z.object({
  name: z.nullable(text(limits.name)),
  phoneNumber: z.nullable(text(limits.phone)),
  emailAddress: z.nullable(Email),
  lat: z.nullable(degrees(90)),
  lng: z.nullable(degrees(180)),
  address: z.nullable(NewAddress),
  statusId: z.nullable(Id),
  assignedToUserId: z.nullable(Id),
  /** Display values, each once. */
  tags: z.array(DisplayValue).check(z.maxLength(limits.tagsPerProspect)),
  note: z.nullable(text(limits.note)),
  /** Undefined: the file has no such column. */
  source: z.optional(z.nullable(text(limits.source))),
});
export type Draft = z.infer<typeof Draft>;

/** Column of a field whose column is called otherwise. */
const columnOf: Readonly<Record<string, Column>> = {
  phoneNumber: "phone",
  emailAddress: "email",
  note: "notes",
};

/** The faults of the row joined into one text of at most `limits.rowFault` characters, which repeats nothing of the row. */
export function draftOf(cells: readonly string[], header: Header, names: Names): Draft | { readonly fault: string } {
  if (cells.length !== header.width) {
    return { fault: `has ${cells.length} cells where the header has ${header.width}` };
  }
  const faults: string[] = [];
  const cell = (column: Column): string => unguarded(cells[header.places[column] ?? -1] ?? "");
  const input = inputOf(cell, header.places.source !== undefined, names, faults);
  const parsed = z.safeParse(Draft, input);
  if (parsed.success && faults.length === 0) return parsed.data;
  return { fault: joined([...faults, ...(parsed.error?.issues ?? []).map(faultOf)]) };
}

/** Each once; as many as fit, and how many more there are. */
function joined(faults: readonly string[]): string {
  const [first = "", ...more] = new Set(faults);
  let text = first;
  for (const [i, fault] of more.entries()) {
    const left = more.length - i - 1;
    const longer = `${text}; ${fault}`;
    if (`${longer}${andMore(left)}`.length > limits.rowFault) return `${text}${andMore(left + 1)}`;
    text = longer;
  }
  return text;
}

const andMore = (count: number): string => (count === 0 ? "" : `; and ${count} more`);

/** Fields from texts. An empty cell is no value; what names or counts is trimmed, texts stay as they are. */
function inputOf(
  cell: (column: Column) => string,
  hasSource: boolean,
  names: Names,
  faults: string[],
): z.input<typeof Draft> {
  const exact = (column: Column): string | null => cell(column) || null;
  const [lat, lng] = [degreesOf("lat", cell("lat"), faults), degreesOf("lng", cell("lng"), faults)];
  const address = addressOf(cell);
  const isPlaced = cell("lat").trim() !== "" && cell("lng").trim() !== "";
  if (address === null && !isPlaced) faults.push("needs address1, city, state and zip, or lat and lng");
  return {
    name: exact("name"),
    phoneNumber: exact("phone"),
    emailAddress: cell("email").trim() || null,
    lat,
    lng,
    address,
    statusId: found("status", cell("status"), names.statuses, "no active status", faults),
    assignedToUserId: assigneeOf(cell, names, faults),
    tags: tagsOf(cell("tags")),
    note: exact("notes"),
    ...(hasSource && { source: exact("source") }),
  };
}

const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function degreesOf(column: Column, cell: string, faults: string[]): number | null {
  const given = cell.trim();
  if (given === "") return null;
  if (decimal.test(given)) return Number(given);
  faults.push(`${column}: must be a number`);
  return null;
}

/** Null where it is not whole: the row then stands by its coordinates. */
function addressOf(cell: (column: Column) => string): NewAddress | null {
  const [address1, city, state, zip] = [cell("address1"), cell("city"), cell("state"), cell("zip")];
  if (address1 === "" || city === "" || state === "" || zip === "") return null;
  return { address1, address2: cell("address2") || null, city, state, zip };
}

/** An e-mail address of its own column wins: exports have the assignee's name in the other. */
function assigneeOf(cell: (column: Column) => string, { users }: Names, faults: string[]): number | null {
  const column = cell("assignedToEmail").trim() === "" ? "assignedTo" : "assignedToEmail";
  return found(column, cell(column), users, "no active user", faults);
}

function found(
  column: Column,
  cell: string,
  ids: ReadonlyMap<string, number>,
  none: string,
  faults: string[],
): number | null {
  const name = folded(cell);
  if (name === "") return null;
  const id = ids.get(name);
  if (id === undefined) faults.push(`${column}: ${none} is called so`);
  return id ?? null;
}

/** Each once, whatever its case. Of too many as few as show that they are: each at fault would be an object of its own. */
function tagsOf(cell: string): string[] {
  const values = cell.split(TAG_SEPARATOR).map((value) => value.trim());
  const distinct = new Map(values.filter((value) => value !== "").map((value) => [folded(value), value]));
  return [...distinct.values()].slice(0, limits.tagsPerProspect + 1);
}

function faultOf({ path, message }: z.core.$ZodIssue): string {
  const [field = "", part] = path.map(String);
  const column = field === "address" ? part : (columnOf[field] ?? field);
  return `${column}: ${message}`;
}
