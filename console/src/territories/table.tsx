/** The table beside the map of territories. */
import type { Territory } from "canvassing-client/api";
import { useMemo } from "react";
import { nameOf, useUsers } from "../api/reference.ts";
import { DataTable } from "../ui/data-table.tsx";
import { Empty } from "../ui/states.tsx";
import { dateText } from "../ui/text.ts";
import style from "./page.module.css";

interface TableProps {
  readonly territories: readonly Territory[];
  readonly open: Territory | undefined;
  readonly onOpen: (id: number) => void;
}

export function TerritoryTable({ territories, open, onOpen }: TableProps) {
  const users = useUsers().data;
  const columns = useMemo(
    () => [
      {
        id: "name",
        header: "Name",
        cell: ({ id, name }: Territory) => (
          <button type="button" className={style.open} onClick={() => onOpen(id)}>
            {name}
          </button>
        ),
      },
      {
        id: "assignedTo",
        header: "Assigned to",
        cell: ({ assignedToUserId }: Territory) => {
          const user = users?.find(({ id }) => id === assignedToUserId);
          if (user !== undefined) return nameOf(user);
          return users === undefined ? "" : "Nobody";
        },
      },
      { id: "corners", header: "Corners", align: "right" as const, cell: ({ polygon }: Territory) => polygon.length },
      { id: "created", header: "Created", minor: true, cell: ({ createdAt }: Territory) => dateText(createdAt) },
    ],
    [users, onOpen],
  );
  if (territories.length === 0) {
    return <Empty title="There are no territories yet">Draw one on the map, or import GeoJSON.</Empty>;
  }
  return (
    <DataTable
      label="Territories"
      columns={columns}
      rows={territories}
      rowKey={({ id }) => id}
      isCurrent={({ id }) => id === open?.id}
    />
  );
}
