/** The rows of a file that cannot be imported, with the reason. */
import type { RowFault } from "canvassing-client/api";
import { DataTable } from "../ui/data-table.tsx";
import { amount } from "../ui/text.ts";

/** More rows would make the page slow. */
const SHOWN = 200;

const columns = [
  { id: "row", header: "Row", align: "right" as const, cell: ({ row }: RowFault) => row },
  { id: "message", header: "Reason", cell: ({ message }: RowFault) => message },
];

export function RowFaults({ faults }: { faults: readonly RowFault[] }) {
  if (faults.length === 0) return null;
  return (
    <>
      <h3>
        {amount(faults.length, "row")} with a fault
        {faults.length > SHOWN && `; these are the first ${SHOWN}`}
      </h3>
      <DataTable label="Rows with faults" columns={columns} rows={faults.slice(0, SHOWN)} rowKey={({ row }) => row} />
    </>
  );
}
