/** A bar with a button that changes the selected prospects, or all prospects that match the filters. A job makes the changes. */
import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { amount } from "../ui/text.ts";
import { BulkDialog } from "./bulk-dialog.tsx";
import type { Filter } from "./filter.ts";

interface BulkBarProps {
  readonly filter: Filter;
  readonly total: number;
  readonly selected: ReadonlySet<number>;
  readonly onDone: () => void;
}

export function BulkBar({ filter, total, selected, onDone }: BulkBarProps) {
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
