/** Converts the cells of an imported row to a draft of a prospect with its note, or to a message about its faults. */
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { isBlank } from "#shared/blank.ts";
import { folded } from "#shared/caseless.ts";
import { readJson } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import { AddressPatch, NewAddress } from "#shared/prospects/address-input.ts";
import { addressColumns, type Column, knownColumns, TAG_SEPARATOR } from "#shared/prospects/csv/format.ts";
import { type Cell, cellsOf, type Header, isTooLong } from "#shared/prospects/csv/header.ts";
import { CustomFields } from "#shared/prospects/custom-fields.ts";
import { decimal } from "#shared/prospects/filter.ts";
import { DisplayValue } from "#shared/reference/schema.ts";
import { degrees, Email, Id, text } from "#shared/schema.ts";

/** The ids of statuses by case-folded value, and of users by case-folded e-mail address. */
export interface Names {
  readonly statuses: ReadonlyMap<string, number>;
  readonly users: ReadonlyMap<string, number>;
  /** Returns the most similar name of an active status or user. */
  readonly nearest?: (kind: "status" | "user", value: string) => string | undefined;
}

const CustomFieldText = z.pipe(
  z.pipe(
    z.string(),
    z.transform((value, context) => {
      try {
        const fields = readJson(value);
        // The key `__proto__` is refused, as in JSON bodies.
        if (!JSON.stringify(fields).includes('"__proto__":')) return fields;
      } catch {}
      context.issues.push({ code: "custom", message: "must be a JSON object without the key __proto__", input: value });
      return z.NEVER;
    }),
  ),
  CustomFields,
);

export const Draft = z.object({
  name: z.nullable(text(limits.name)),
  phoneNumber: z.nullable(text(limits.phone)),
  secondaryPhoneNumber: z.nullable(text(limits.phone)),
  emailAddress: z.nullable(Email),
  lat: z.nullable(degrees(90, "withoutValue")),
  lng: z.nullable(degrees(180, "withoutValue")),
  address: z.nullable(NewAddress),
  statusId: z.nullable(Id),
  assignedToUserId: z.nullable(Id),
  tags: z
    .array(DisplayValue)
    .check(z.maxLength(limits.tagsPerProspect, `must hold at most ${limits.tagsPerProspect} tags`)),
  note: z.nullable(text(limits.note)),
  /** Undefined without a column `source`. */
  source: z.optional(z.nullable(text(limits.source))),
  sourceId: z.nullable(text(limits.sourceId)),
  customFieldData: z.nullable(CustomFieldText),
});
export type Draft = z.infer<typeof Draft>;

/** The cells of a row that changes a prospect. Null and an empty list change nothing. */
export const FilledCells = z.extend(Draft, { address: AddressPatch });
export type FilledCells = z.infer<typeof FilledCells>;

const columnOf: Readonly<Record<string, Column>> = { phoneNumber: "phone", emailAddress: "email", note: "notes" };

interface Fault {
  /** Why the row is skipped, in at most `limits.rowFault` bytes, with the faulty values where there is room. */
  readonly fault: string;
  /** The same reason without the faulty values. */
  readonly plain?: string;
}

/** `warnings` is the number of faulty values that are left empty, because the header of the column is a synonym (see `Header.lenient`). */
type Read<T> = T & { readonly warnings: number };

export const draftOf = (cells: readonly string[], header: Header, names: Names): Read<Draft> | Fault =>
  read(cells, header, Draft, (cell, report) => {
    const address = addressOf(cell);
    const hasPoint = point.every((column) => cell(column) !== "");
    if (address === null && !hasPoint) {
      const message = `must have address1, city, state and zip, or both lat and lng${lacking(cellsOf(cells, header), header)}`;
      report({ message });
    }
    return { ...fieldsOf(cell, header, names, report), address };
  });

/** Returns the end of a message: what an incomplete address, or else an incomplete pair of coordinates, lacks. */
function lacking(cell: Cell, { positions }: Header): string {
  const isAbsent = (column: Column): boolean => positions[column] === undefined;
  const isEmpty = (column: Column): boolean => cell(column) === "";
  if ([...wholeAddress, ...point].every(isAbsent)) return ", but the file has none of these columns";
  const begun = [wholeAddress, point].find((columns) => columns.some(isEmpty) && !columns.every(isEmpty)) ?? [];
  const absent = begun.filter(isAbsent);
  const empty = begun.filter((column) => isEmpty(column) && !isAbsent(column));
  const parts = [
    ...(empty.length > 0 ? [`${empty.join(", ")} ${empty.length === 1 ? "is" : "are"} empty`] : []),
    ...(absent.length > 0 ? [`the file has no column ${absent.join(", ")}`] : []),
  ];
  return parts.length === 0 ? "" : `, but ${parts.join(", and ")}`;
}

/**
 * `all` also has the inactive statuses and users, because a prospect may keep an inactive one. In a column that the file names by a
 * synonym, an inactive name is a faulty value, which is left empty, so that the row does not fail.
 */
export const filledCellsOf = (
  cells: readonly string[],
  header: Header,
  all: Names,
  active: Names,
): Read<FilledCells> | Fault =>
  read(cells, header, FilledCells, (cell, report) => {
    const isExact = (column: Column) => !header.lenient.has(column);
    const names = {
      ...active,
      statuses: (isExact("status") ? all : active).statuses,
      users: (isExact(assigneeColumn(cell)) ? all : active).users,
    };
    return {
      ...fieldsOf(cell, header, names, report),
      address: Object.fromEntries(addressColumns.flatMap((part) => (cell(part) === "" ? [] : [[part, cell(part)]]))),
    };
  });

interface CellFault {
  /** Absent if the fault concerns several cells. */
  readonly column?: Column;
  readonly message: string;
  readonly value?: string | undefined;
  readonly nearest?: string | undefined;
  /** The position of a faulty tag in its cell. */
  readonly item?: number;
}

type Report = (fault: CellFault) => void;

/** If a column that the file names by a synonym has a faulty value, reads the row again with this cell empty. */
function read<S extends z.ZodMiniType<object>>(
  cells: readonly string[],
  header: Header,
  schema: S,
  inputOf: (cell: Cell, report: Report) => z.input<S>,
): Read<z.output<S>> | Fault {
  if (isTooLong(cells, header)) {
    return { fault: `must have at most ${header.width} cells like the header, but has ${cells.length}` };
  }
  const cell = cellsOf(cells, header);
  const left = new Set<Column>();
  const ofPlace: CellFault[] = [];
  for (;;) {
    const faults: CellFault[] = [];
    const parsed = z.safeParse(
      schema,
      inputOf(
        (column) => (left.has(column) ? "" : cell(column)),
        (fault) => faults.push(fault),
      ),
    );
    faults.push(...(parsed.error?.issues ?? []).map(faultOf));
    if (parsed.success && faults.length === 0) {
      return { ...parsed.data, warnings: left.size };
    }
    ofPlace.push(...faults.filter(({ column }) => placeColumns.some((part) => part === column)));
    const isLeft = (column: Column) => header.lenient.has(column) && !left.has(column);
    const own = faults.flatMap(({ column }) => column ?? []).filter(isLeft);
    // If all faulty cells belong to the address and none is in a `lenient` column, the address cells in `lenient` columns are left empty,
    // and the row has no address.
    const isOfAddress = faults.every(({ column }) => addressColumns.some((part) => part === column));
    const columns = own.length > 0 || !isOfAddress ? own : addressColumns.filter((it) => isLeft(it) && cell(it) !== "");
    if (columns.length === 0) {
      // The message names a value that was left empty only if the row therefore has neither an address nor coordinates.
      const causes = faults.some(({ column }) => column === undefined) ? [...ofPlace, ...faults] : faults;
      return faultIn(causes.map((fault) => withValue(fault, cell)));
    }
    for (const column of columns) left.add(column);
  }
}

const textOfFault = ({ column, message }: CellFault): string =>
  column === undefined ? message : `${column}: ${message}`;

/** Maximum characters of a faulty value in a message. */
const SHOWN_VALUE = 40;

function withValue(fault: CellFault, cell: Cell): CellFault {
  const { column, item } = fault;
  if (column === undefined || fault.value !== undefined) return fault;
  return { ...fault, value: item === undefined ? cell(column) : tagsOf(cell(column))[item] };
}

/** Cuts and quotes a value for a message. Replaces characters that JSON would escape: `{"a":1}` is shown as `{'a':1}`. */
export const quoted = (text: string): string => {
  const letters = [...text];
  const cut = letters.length > SHOWN_VALUE ? `${letters.slice(0, SHOWN_VALUE).join("")}...` : text;
  return `'${cut.replaceAll('"', "'").replace(/[\\\p{C}\p{Zl}\p{Zp}]/gu, "?")}'`;
};

function shownFault(fault: CellFault): string {
  const { value = "", nearest } = fault;
  const text = textOfFault(fault);
  if (value === "") return text;
  if (!fault.message.startsWith("must")) return `${text} (${quoted(value)})`;
  return `${text}, but is ${quoted(value)}${nearest === undefined ? "" : ` (the nearest is ${quoted(nearest)})`}`;
}

/** Names all faults first, and then adds each value for which the message has room. */
function faultIn(faults: readonly CellFault[]): Fault {
  const distinct = [...Map.groupBy(faults, textOfFault)];
  let texts = distinct.map(([text]) => text);
  const plain = joined(texts);
  if (texts.join("; ") !== plain) return { fault: plain, plain };
  for (const [i, [, same]] of distinct.entries()) {
    const longer = texts.with(i, shownFault(at(same, 0)));
    if (Buffer.byteLength(longer.join("; ")) <= limits.rowFault) texts = longer;
  }
  return { fault: texts.join("; "), plain };
}

/** Joins the faults to at most `limits.rowFault` characters. The text ends with the number of faults left out. */
function joined(faults: readonly string[]): string {
  const [first = "", ...more] = faults;
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

/** Reads all cells except those of the address. An empty cell means no value. `name`, `phone`, `notes` and `source` keep outer spaces. */
function fieldsOf(cell: Cell, { positions, lenient, hasDecimalComma }: Header, names: Names, report: Report) {
  const exact = (column: Column): string | null => cell(column) || null;
  const degrees = (column: Column): number | null => {
    const given = cell(column).trim();
    return degreesOf(column, hasDecimalComma ? given.replace(",", ".") : given, report);
  };
  const assignee = assigneeColumn(cell);
  const source = exact("source");
  return {
    name: exact("name"),
    phoneNumber: phoneOf("phone", cell, report),
    secondaryPhoneNumber: phoneOf("secondaryPhoneNumber", cell, report),
    emailAddress: cell("email").trim() || null,
    lat: degrees("lat"),
    lng: degrees("lng"),
    statusId: idOf("status", cell("status"), names, report),
    assignedToUserId: idOf(assignee, cell(assignee), names, report),
    tags: tagsOf(cell("tags")),
    note: exact("notes"),
    sourceId: cell("sourceId").trim() || null,
    customFieldData: exact("customFieldData"),
    ...(positions.source !== undefined && (source !== null || !lenient.has("source")) && { source }),
  };
}

/** A spreadsheet program saves a long number in this form, which lacks the last digits. */
const exponential = /^\s*[+-]?\d+(?:[.,]\d*)?e[+-]?\d+\s*$/i;

function phoneOf(column: "phone" | "secondaryPhoneNumber", cell: Cell, report: Report): string | null {
  const phone = cell(column);
  if (exponential.test(phone)) {
    report({ column, message: "must have all its digits and no exponent (format the column as text and save again)" });
  }
  return phone || null;
}

function degreesOf(column: Column, given: string, report: Report): number | null {
  if (given === "") return null;
  // zod would report Infinity, the result for too large numbers, as a type error.
  if (decimal.test(given) && Number.isFinite(Number(given))) return Number(given);
  report({ column, message: "must be a number" });
  return null;
}

const wholeAddress = addressColumns.filter((column) => column !== "address2");
const point = ["lat", "lng"] as const;
const placeColumns = [...addressColumns, ...point] as const;

function addressOf(cell: Cell): NewAddress | null {
  const [address1, city, state, zip] = [cell("address1"), cell("city"), cell("state"), cell("zip")];
  if (address1 === "" || city === "" || state === "" || zip === "") return null;
  return { address1, address2: cell("address2") || null, city, state, zip };
}

/** An export has the assignee's name in `assignedTo`. An import expects the e-mail address there if `assignedToEmail` is empty. */
const assigneeColumn = (cell: Cell): Column => (cell("assignedToEmail") === "" ? "assignedTo" : "assignedToEmail");

function idOf(column: Column, cell: string, { statuses, users, nearest }: Names, report: Report): number | null {
  const name = folded(cell);
  if (name === "") return null;
  const isStatus = column === "status";
  const id = (isStatus ? statuses : users).get(name);
  if (id !== undefined) return id;
  const message = isStatus ? "must be the value of an active status" : "must be the e-mail of an active user";
  report({ column, message, nearest: nearest?.(isStatus ? "status" : "user", cell) });
  return null;
}

/** Returns at most one tag more than a prospect may have, enough for the validation to fail, because zod creates an object for each tag. */
function tagsOf(cell: string): string[] {
  const values = cell.split(TAG_SEPARATOR).map((value) => value.trim());
  const distinct = new Map(values.filter((value) => !isBlank(value)).map((value) => [folded(value), value]));
  return [...distinct.values()].slice(0, limits.tagsPerProspect + 1);
}

function faultOf(issue: z.core.$ZodIssue): CellFault {
  const [field = "", part] = issue.path.map(String);
  const name = field === "address" ? part : (columnOf[field] ?? field);
  const column = knownColumns.find((known) => known === name);
  const place = column === undefined ? {} : { column };
  if (field === "customFieldData" && part !== undefined && issue.code === "custom") {
    const value = `/${issue.path.slice(1).map(String).join("/")}: ${issue.params?.found}`;
    return { ...place, message: `has a value that ${issue.message}`, value };
  }
  const item = field === "tags" && part !== undefined ? { item: Number(part) } : {};
  return { ...place, ...item, message: issue.message };
}
