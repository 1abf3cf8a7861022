/**
 * A table with sortable columns and rows that can be selected. Where there is little space, each row becomes a card, and each cell a line
 * of the card.
 */
import {
  createColumnHelper,
  createSortedRowModel,
  rowSortingFeature,
  type SortingState,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { type ReactNode, useMemo } from "react";
import { Button } from "./button.tsx";
import style from "./data-table.module.css";
import { Icon } from "./icon.tsx";

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /**
   * Returns the value by which rows are sorted. A column without `sortBy` cannot be sorted. Rows for which it returns undefined come last.
   */
  readonly sortBy?: (row: Row) => string | number | undefined;
  readonly align?: "right";
  /** True if only screen readers get the header. It is for columns of buttons, whose own labels are clear enough. */
  readonly isQuiet?: boolean;
  /** True if the column is left out where there is little space. */
  readonly minor?: boolean;
}

export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

interface DataTableProps<Row> {
  /** The name of the table for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly isCurrent?: (row: Row) => boolean;
  readonly sort?: Sort | undefined;
  readonly onSort?: (sort: Sort | undefined) => void;
  readonly selection?: Selection<Row> | undefined;
  /** Shown in place of a table without rows. */
  readonly empty?: ReactNode;
}

export interface Selection<Row> {
  readonly isSelected: (row: Row) => boolean;
  readonly toggle: (row: Row) => void;
  readonly toggleAll: () => void;
  readonly nameOf: (row: Row) => string;
}

/**
 * ARIA roles for the elements of the table. These are the roles that the elements have by default. But some browsers drop the default roles
 * if the style sheet shows the rows as cards, so the elements set their roles explicitly.
 */
const roles = {
  table: { role: "table" },
  rowgroup: { role: "rowgroup" },
  row: { role: "row" },
  columnheader: { role: "columnheader" },
  cell: { role: "cell" },
} as const;

/** A table with more columns than this hides its minor columns at a larger width than other tables. */
const MANY_COLUMNS = 7;

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });

export function DataTable<Row extends { readonly id: string | number }>(props: DataTableProps<Row>) {
  const { label, columns, rows, isCurrent, sort, onSort, selection, empty } = props;
  const defined = useMemo(() => {
    const helper = createColumnHelper<typeof features, Row>();
    return helper.columns(
      columns.map(({ id, header, sortBy, cell }) =>
        helper.accessor((row) => sortBy?.(row), {
          id,
          header,
          cell: ({ row }) => cell(row.original),
          enableSorting: sortBy !== undefined && onSort !== undefined,
          sortUndefined: "last",
          sortFn: (a, b, column) => compare(a.getValue(column), b.getValue(column)),
        }),
      ),
    );
  }, [columns, onSort]);
  const sorting: SortingState = sort === undefined ? [] : [{ id: sort.column, desc: sort.descending }];
  const data = useMemo(() => [...rows], [rows]);
  const table = useTable({ features, columns: defined, data, state: { sorting } });
  const looks = new Map(columns.map((column) => [column.id, column]));
  const allSelected = selection !== undefined && rows.length > 0 && rows.every(selection.isSelected);

  if (rows.length === 0 && empty !== undefined) return empty;

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a wide table sideways
    <section className={`${style.frame} card`} aria-label={label} tabIndex={0}>
      <table className={style.table} data-wide={columns.length > MANY_COLUMNS} {...roles.table}>
        <thead {...roles.rowgroup}>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} {...roles.row}>
              {selection !== undefined && (
                <th className={style.check} {...roles.columnheader}>
                  <input
                    type="checkbox"
                    aria-label="Select all rows"
                    checked={allSelected}
                    onChange={selection.toggleAll}
                  />
                </th>
              )}
              {group.headers.map(({ column }) => (
                <th
                  key={column.id}
                  {...roles.columnheader}
                  className={classOf(looks.get(column.id))}
                  aria-sort={sort?.column === column.id ? (sort.descending ? "descending" : "ascending") : undefined}
                >
                  {column.getCanSort() ? (
                    <button type="button" onClick={() => onSort?.(next(sort, column.id))}>
                      {looks.get(column.id)?.header}
                      {sort?.column === column.id && <Icon name={sort.descending ? "down" : "up"} size={14} />}
                    </button>
                  ) : (
                    <span className={looks.get(column.id)?.isQuiet === true ? "visually-hidden" : undefined}>
                      {looks.get(column.id)?.header}
                    </span>
                  )}
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody {...roles.rowgroup}>
          {table.getRowModel().rows.map(({ original }) => (
            <tr key={original.id} {...roles.row} data-current={isCurrent?.(original) ?? false}>
              {selection !== undefined && (
                <td className={style.check} {...roles.cell}>
                  <input
                    type="checkbox"
                    aria-label={`Select ${selection.nameOf(original)}`}
                    checked={selection.isSelected(original)}
                    onChange={() => selection.toggle(original)}
                  />
                </td>
              )}
              {columns.map((column) => (
                <td
                  key={column.id}
                  {...roles.cell}
                  className={classOf(column)}
                  data-label={column.isQuiet === true ? undefined : column.header}
                >
                  {column.cell(original)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const classOf = (column: Pick<Column<never>, "align" | "minor"> | undefined): string =>
  [column?.align === "right" ? style.right : "", column?.minor === true ? style.minor : ""].join(" ");

const collator = new Intl.Collator(undefined, { numeric: true });

function compare(a: unknown, b: unknown): number {
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
}

/** Returns the next order after a click on a column's header: first ascending, then descending, and then the table's own order. */
function next(sort: Sort | undefined, column: string): Sort | undefined {
  if (sort?.column !== column) return { column, descending: false };
  return sort.descending ? undefined : { column, descending: true };
}

interface PagesProps {
  readonly page: number;
  readonly pages: number;
  readonly onChange: (page: number) => void;
}

/** The buttons that turn the pages of a table. */
export function Pages({ page, pages, onChange }: PagesProps) {
  return (
    <nav className="row" aria-label="Pages of the table">
      <Button disabled={page <= 1} onClick={() => onChange(page - 1)}>
        Previous
      </Button>
      <span>
        Page {page} of {pages}
      </span>
      <Button disabled={page >= pages} onClick={() => onChange(page + 1)}>
        Next
      </Button>
    </nav>
  );
}
