/** A table of the rows of a file that cannot be imported, with the reason for each row. */
import { useQuery } from "@tanstack/react-query";
import type { RowFault } from "canvassing-client/api";
import { useMemo } from "react";
import { DataTable } from "../ui/data-table.tsx";
import { amount } from "../ui/text.ts";
import type { ImportOutcome } from "./import-request.ts";
import { rowTexts } from "./row-texts.ts";

/** Maximum number of rows in the table, because more rows would make the page slow. */
const SHOWN = 200;

interface FaultsProps {
  readonly file: File;
  readonly result: Pick<ImportOutcome, "errors" | "encoding" | "skipped">;
}

export function RowFaults({ file, result: { errors, encoding, skipped } }: FaultsProps) {
  const shown = useMemo(() => errors.slice(0, SHOWN).map((fault) => ({ ...fault, id: fault.row })), [errors]);
  // The browser reads the faulty rows from the file on the user's disk. This may fail if the file was changed after the import. The table
  // then shows the numbers of the rows and the reasons, but not the texts of the rows.
  const { data: texts } = useQuery({
    queryKey: ["row-texts", file.name, file.lastModified, encoding, shown.map(({ row }) => row)],
    queryFn: () => rowTexts(piecesOf(file, encoding ?? "utf-8"), new Set(shown.map(({ row }) => row))),
    enabled: shown.length > 0,
    retry: false,
    gcTime: 0,
  });
  const columns = useMemo(
    () => [
      { id: "row", header: "Row", align: "right" as const, cell: ({ row }: RowFault) => row },
      { id: "message", header: "Reason", cell: ({ message }: RowFault) => message },
      {
        id: "text",
        header: "Text of the row",
        cell: ({ row }: RowFault) => <code className="typed">{texts?.get(row)}</code>,
      },
    ],
    [texts],
  );
  if (shown.length === 0) return null;
  return (
    <>
      <h3>
        {amount(skipped, "row")} with a fault
        {skipped > shown.length && `; these are the first ${shown.length}`}
      </h3>
      <DataTable label="Rows with faults" columns={columns} rows={shown} />
    </>
  );
}

async function* piecesOf(file: File, encoding: string): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  // Not all browsers have `for await` for these streams.
  const reader = file.stream().getReader();
  try {
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      yield decoder.decode(value, { stream: true });
    }
    yield decoder.decode();
  } finally {
    await reader.cancel();
  }
}
