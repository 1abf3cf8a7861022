/** The columns of exported and imported files. */

/** Of an export, in their order. */
export const exportColumns = [
  "id",
  "name",
  "phone",
  "email",
  "lat",
  "lng",
  "address1",
  "address2",
  "city",
  "state",
  "zip",
  "status",
  "assignedTo",
  "assignedToEmail",
  "tags",
  "notes",
  "createdBy",
  "source",
  "createdAt",
] as const;
export type Column = (typeof exportColumns)[number];

/** Who made a record, when, and under which id is decided anew by an import: these are accepted and not looked at. */
const decidedAnew: ReadonlySet<Column> = new Set<Column>(["id", "createdBy", "createdAt"]);

/** Those whose cells an import reads. */
export const importColumns: readonly Column[] = exportColumns.filter((column) => !decidedAnew.has(column));

/** Between the tags of one cell: no tag's value holds it. */
export const TAG_SEPARATOR = ";";

/** Without case and outer blanks. Undefined where no column is called so. */
export function columnNamed(header: string): Column | undefined {
  const name = header.trim().toLowerCase();
  return exportColumns.find((column) => column.toLowerCase() === name);
}
