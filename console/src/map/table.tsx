/** The prospects of the map as a table. It is for users who cannot see the map, or who do not want to search the map. */
import { useState } from "react";
import { useSearchParams } from "wouter";
import { columns } from "../prospects/columns.tsx";
import type { Filter } from "../prospects/filter.ts";
import { useProspects } from "../prospects/queries.ts";
import { DataTable, Pages } from "../ui/data-table.tsx";
import { Answer } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";

const PAGE_SIZE = 50;
const shownColumns = columns.filter(({ minor = false }) => !minor);

interface TableProps {
  readonly filter: Filter;
  /** The visible part of the map: `west,south,east,north`. */
  readonly box: string;
}

export function MapTable({ filter, box }: TableProps) {
  const [isVisibleOnly, setVisibleOnly] = useState(true);
  const [turned, setTurned] = useState({ of: "", page: 1 });
  const wanted = isVisibleOnly ? { ...filter, bbox: box } : filter;
  // `turned` contains the page that the user chose, and the filter and part of the map at that time. If the filter or the part of the map
  // has changed since then, the table begins at page 1.
  const of = JSON.stringify(wanted);
  const page = turned.of === of ? turned.page : 1;
  const [parameters] = useSearchParams();
  return (
    <>
      <label className="row">
        <input type="checkbox" checked={isVisibleOnly} onChange={() => setVisibleOnly(!isVisibleOnly)} />
        Only the visible part of the map
      </label>
      <Answer query={useProspects(wanted, page, PAGE_SIZE)} what="the prospects">
        {({ items, total, pageSize }) => (
          <>
            <p aria-live="polite">
              {total === 0
                ? "No prospect is in this part of the map."
                : `${amount(total, "prospect")}${isVisibleOnly ? " in this part of the map" : ", also those without a place"}.`}
            </p>
            {total > 0 && (
              <DataTable
                label="Table of prospects"
                columns={shownColumns}
                rows={items}
                isCurrent={({ id }) => String(id) === parameters.get("prospect")}
              />
            )}
            {total > pageSize && (
              <Pages
                page={page}
                pages={Math.ceil(total / pageSize)}
                onChange={(next) => setTurned({ of, page: next })}
              />
            )}
          </>
        )}
      </Answer>
    </>
  );
}
