/** A table of the counts in an activity report, with a row for each day, user or territory. */
import type { ActivityGroup } from "canvassing-client/api";
import { useMemo } from "react";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { numberText } from "../ui/text.ts";

interface TableProps {
  readonly label: string;
  readonly head: string;
  readonly groups: readonly ActivityGroup[];
  readonly nameOf: (group: ActivityGroup) => string;
  /** Returns what identifies a group. Names of users and territories need not be unique. */
  readonly keyOf: (group: ActivityGroup) => string | number;
}

const counts: readonly Column<ActivityGroup>[] = [
  { id: "status", header: "Status changes", align: "right", cell: (group) => numberText(group.statusChanges) },
  { id: "notes", header: "Notes", align: "right", cell: (group) => numberText(group.notes) },
  { id: "appointments", header: "Appointments", align: "right", cell: (group) => numberText(group.appointments) },
  { id: "new", header: "New prospects", align: "right", minor: true, cell: (group) => numberText(group.creations) },
];

export function ActivityTable({ label, head, groups, nameOf, keyOf }: TableProps) {
  const columns = useMemo(() => [{ id: "name", header: head, cell: nameOf }, ...counts], [head, nameOf]);
  const empty = <p>Nothing has been done in this time span.</p>;
  return <DataTable label={label} columns={columns} rows={groups} rowKey={keyOf} empty={empty} />;
}
