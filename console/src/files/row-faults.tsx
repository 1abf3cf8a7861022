/** A table of the rows of a file that cannot be imported, with the reason for each row. */
import type { RowFault } from "canvassing-client/api";
import { DataTable } from "../ui/data-table.tsx";
import { amount } from "../ui/text.ts";

/** Maximum number of rows in the table, because more rows would make the page slow. */
const SHOWN = 200;

const columns = [
  { id: "row", header: "Row", align: "right" as const, cell: ({ row }: RowFault) => row },
  { id: "message", header: "Reason", cell: ({ message }: RowFault) => message },
];

/** @param total the number of rows with a fault, of which `faults` may be the first ones */
export function RowFaults({ faults, total }: { faults: readonly RowFault[]; total: number }) {
  if (faults.length === 0) return null;
  const shown = Math.min(faults.length, SHOWN);
  return (
    <>
      <h3>
        {amount(total, "row")} with a fault
        {total > shown && `; these are the first ${shown}`}
      </h3>
      <DataTable label="Rows with faults" columns={columns} rows={faults.slice(0, SHOWN)} rowKey={({ row }) => row} />
    </>
  );
}
