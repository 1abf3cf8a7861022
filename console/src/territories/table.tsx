/** The table beside the map of territories. */
import type { Territory } from "canvassing-client/api";
import { useMemo } from "react";
import { nameOf, useUsers } from "../api/reference.ts";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Empty } from "../ui/states.tsx";
import { Time } from "../ui/time.tsx";
import { cornersIn } from "./corners.ts";

interface TableProps {
  readonly territories: readonly Territory[];
  readonly open: Territory | undefined;
  readonly onOpen: (id: number) => void;
}

export function TerritoryTable({ territories, open, onOpen }: TableProps) {
  const users = useUsers().data;
  const columns = useMemo(
    (): readonly Column<Territory>[] => [
      {
        id: "name",
        header: "Name",
        cell: ({ id, name }) => (
          <button type="button" className="open" onClick={() => onOpen(id)}>
            {name}
          </button>
        ),
      },
      {
        id: "assignedTo",
        header: "Assigned to",
        cell: ({ assignedToUserId }) => {
          const user = users?.find(({ id }) => id === assignedToUserId);
          if (user !== undefined) return nameOf(user);
          return users === undefined ? "" : "Nobody";
        },
      },
      { id: "corners", header: "Corners", align: "right", cell: ({ polygon }) => cornersIn(polygon) },
      { id: "created", header: "Created", minor: true, cell: ({ createdAt }) => <Time iso={createdAt} /> },
    ],
    [users, onOpen],
  );
  return (
    <DataTable
      label="Territories"
      columns={columns}
      rows={territories}
      rowKey={({ id }) => id}
      isCurrent={({ id }) => id === open?.id}
      empty={<Empty title="There are no territories yet">Draw one on the map, or import GeoJSON.</Empty>}
    />
  );
}
