/** Prospects as a table. The URL contains the filters, the order, the page number and the open prospect. */
import type { ListedProspect } from "canvassing-client/api";
import { type ReactNode, useCallback, useState } from "react";
import { Link } from "wouter";
import { Download } from "../api/download.tsx";
import { mayManage, useMe } from "../api/reference.ts";
import { Button, buttonClass } from "../ui/button.tsx";
import { DataTable, Pages, type Sort } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer, Empty } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";
import { BulkDialog } from "./bulk-dialog.tsx";
import { columns, titleOf } from "./columns.tsx";
import { Drawer } from "./drawer.tsx";
import { type Filter, type FilterState, useFilter, withFilter } from "./filter.ts";
import { FilterBar } from "./filter-bar.tsx";
import style from "./page.module.css";
import { LARGEST_PAGE, useProspects } from "./queries.ts";

const PAGE_SIZE = 50;
const nothing: ReadonlySet<number> = new Set();

export function ProspectsPage() {
  const me = useMe().data;
  const state = useFilter();
  if (me === undefined) return null;
  const { filter, change, parameters } = state;
  const open = Number(parameters.get("prospect") ?? Number.NaN);
  return (
    <div className={style.split}>
      <Page
        title="Prospects"
        lead={
          me.role === "sales" && !me.permissions.includes("canViewAllProspects")
            ? "Those that are assigned to you."
            : undefined
        }
        actions={
          <>
            <Download path={withFilter("/api/prospects/export", filter)} name="prospects.csv">
              Export
            </Download>
            <Link className={buttonClass("plain")} href={withFilter("/map", filter)}>
              Show on map
            </Link>
          </>
        }
      >
        <FilterBar me={me} state={state} />
        <ProspectTable state={state} canChange={mayManage(me)} />
      </Page>
      {Number.isInteger(open) && <Drawer id={open} onClose={() => change({ prospect: undefined })} />}
    </div>
  );
}

function ProspectTable({ state, canChange }: { state: FilterState; canChange: boolean }) {
  const { filter, change, parameters } = state;
  const sort = readSort(parameters);
  const page = Math.max(1, Number(parameters.get("page") ?? 1) || 1);
  // The service sorts only by creation time, the newest first. For any other order, the console loads the newest `LARGEST_PAGE` rows in one
  // page and sorts them itself.
  const query = useProspects(filter, sort === undefined ? page : 1, sort === undefined ? PAGE_SIZE : LARGEST_PAGE);
  // When the filter changes, the selection becomes empty. Otherwise it would contain prospects that are not in the table.
  const of = JSON.stringify(filter);
  const [chosen, setChosen] = useState({ of, ids: nothing });
  const selected = chosen.of === of ? chosen.ids : nothing;
  const setSelected = (ids: ReadonlySet<number>): void => setChosen({ of, ids });
  const onSort = useCallback(
    (next: Sort | undefined) =>
      change({ sort: next && `${next.descending ? "-" : ""}${next.column}`, page: undefined }),
    [change],
  );
  return (
    <Answer query={query} what="the prospects">
      {({ items, total, pageSize }) =>
        total === 0 ? (
          <NoProspects isFiltered={Object.keys(filter).length > 0} />
        ) : (
          <>
            <div className="row between muted">
              <p aria-live="polite">
                <strong>{amount(total, "prospect")}</strong>
                <SortNote sort={sort} total={total} onClear={() => onSort(undefined)} />
              </p>
              {canChange && (
                <BulkBar filter={filter} total={total} selected={selected} onDone={() => setSelected(nothing)} />
              )}
            </div>
            {items.length === 0 && (
              <Empty title="This page of the list is empty">
                <Button onClick={() => change({ page: undefined })}>Show the first page</Button>
              </Empty>
            )}
            <DataTable
              label="Prospects"
              columns={columns}
              rows={items}
              sort={sort}
              onSort={onSort}
              isCurrent={({ id }) => String(id) === parameters.get("prospect")}
              selection={canChange ? selectionOf(items, selected, setSelected) : undefined}
            />
            {sort === undefined && total > pageSize && (
              <Pages
                page={page}
                pages={Math.ceil(total / pageSize)}
                onChange={(next) => change({ page: String(next) })}
              />
            )}
          </>
        )
      }
    </Answer>
  );
}

function selectionOf(
  items: readonly ListedProspect[],
  selected: ReadonlySet<number>,
  setSelected: (ids: ReadonlySet<number>) => void,
) {
  return {
    isSelected: ({ id }: ListedProspect) => selected.has(id),
    nameOf: titleOf,
    toggle: ({ id }: ListedProspect) => setSelected(selected.symmetricDifference(new Set([id]))),
    toggleAll: () => {
      const page = new Set(items.map(({ id }) => id));
      setSelected(page.isSubsetOf(selected) ? selected.difference(page) : selected.union(page));
    },
  };
}

interface NoteProps {
  readonly sort: Sort | undefined;
  readonly total: number;
  readonly onClear: () => void;
}

function SortNote({ sort, total, onClear }: NoteProps): ReactNode {
  if (sort === undefined) return ", the newest first";
  if (total <= LARGEST_PAGE) return null;
  return (
    <>
      . Only the newest {LARGEST_PAGE} are shown and sorted.{" "}
      <Button kind="quiet" onClick={onClear}>
        Show all
      </Button>
    </>
  );
}

function NoProspects({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No prospect matches">Remove a filter, or search for something else.</Empty>;
  return <Empty title="There are no prospects yet">Import a CSV file, or add prospects with the app.</Empty>;
}

/** Reads the parameter `sort`. For example, `name` sorts by name in ascending order, and `-name` in descending order. */
function readSort(parameters: URLSearchParams): Sort | undefined {
  const text = parameters.get("sort") ?? "";
  const column = text.replace(/^-/, "");
  if (!columns.some(({ id, sortBy }) => id === column && sortBy !== undefined)) return undefined;
  return { column, descending: text.startsWith("-") };
}

interface BulkBarProps {
  readonly filter: Filter;
  readonly total: number;
  readonly selected: ReadonlySet<number>;
  readonly onDone: () => void;
}

/** Changes the selected prospects, or all prospects that match the filters. A job makes the changes. */
function BulkBar({ filter, total, selected, onDone }: BulkBarProps) {
  const [isOpen, setOpen] = useState(false);
  const ids = selected.size > 0 ? [...selected] : undefined;
  return (
    <div className="row">
      {ids !== undefined && <span>{amount(ids.length, "prospect")} selected.</span>}
      <Button onClick={() => setOpen(true)}>
        {ids === undefined ? `Change all ${amount(total, "prospect")} …` : "Change the selected …"}
      </Button>
      {ids !== undefined && (
        <Button kind="quiet" onClick={onDone}>
          Select none
        </Button>
      )}
      {isOpen && (
        <BulkDialog
          target={ids === undefined ? { filter } : { ids }}
          onClose={() => setOpen(false)}
          onStarted={() => {
            setOpen(false);
            onDone();
          }}
        />
      )}
    </div>
  );
}
