/** The last imports of the company. */
import type { ImportSummary } from "canvassing-client/api";
import { useMemo } from "react";
import { nameOf, useUsers } from "../api/reference.ts";
import { Badge, type BadgeKinds } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { DataTable } from "../ui/data-table.tsx";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { numberText, timeText } from "../ui/text.ts";
import { isUnfinished, useCancelImport, useImports, useUndoImport } from "./queries.ts";

const kinds: BadgeKinds = {
  awaiting_upload: "warn",
  running: "plain",
  completed: "good",
  failed: "bad",
  cancelled: "warn",
};

function UndoButton({ id }: { id: number }) {
  const undo = useUndoImport();
  return (
    <Button kind="quiet" disabled={undo.isPending || undo.isSuccess} onClick={() => undo.mutate(id)}>
      Undo
    </Button>
  );
}

function CancelButton({ id, createdAt }: Pick<ImportSummary, "id" | "createdAt">) {
  const cancel = useCancelImport();
  return (
    <Button
      kind="quiet"
      aria-label={`Cancel the import of ${timeText(createdAt)}`}
      disabled={cancel.isPending}
      onClick={() => cancel.mutate(id)}
    >
      Cancel
    </Button>
  );
}

const columnsOf = (users: ReadonlyMap<number, string>) => [
  { id: "created", header: "Started", cell: ({ createdAt }: ImportSummary) => timeText(createdAt) },
  {
    id: "by",
    header: "By",
    minor: true,
    cell: ({ createdByUserId }: ImportSummary) => users.get(createdByUserId) ?? "",
  },
  {
    id: "state",
    header: "State",
    cell: ({ state, dryRun }: ImportSummary) => (
      <Badge kind={kinds[state]}>{dryRun ? `${state}, a trial` : state.replace("_", " ")}</Badge>
    ),
  },
  {
    id: "imported",
    header: "Created",
    align: "right" as const,
    cell: ({ imported }: ImportSummary) => numberText(imported),
  },
  {
    id: "updated",
    header: "Updated",
    align: "right" as const,
    cell: ({ updated }: ImportSummary) => numberText(updated),
  },
  {
    id: "skipped",
    header: "Skipped",
    align: "right" as const,
    cell: ({ skipped }: ImportSummary) => numberText(skipped),
  },
  {
    id: "undo",
    header: "Actions",
    isQuiet: true,
    cell: ({ id, state, dryRun, imported, createdAt }: ImportSummary) => (
      <>
        {state === "completed" && !dryRun && imported > 0 && <UndoButton id={id} />}
        {isUnfinished({ state }) && <CancelButton id={id} createdAt={createdAt} />}
      </>
    ),
  },
];

export function ImportTable() {
  const query = useImports();
  const users = useUsers().data;
  const columns = useMemo(() => columnsOf(new Map(users?.map((user) => [user.id, nameOf(user)]))), [users]);
  return (
    <Panel title="Last imports">
      <Answer query={query} what="the imports">
        {({ items }) =>
          items.length === 0 ? (
            <p>Nothing has been imported yet.</p>
          ) : (
            <DataTable label="Last imports" columns={columns} rows={items} rowKey={({ id }) => id} />
          )
        }
      </Answer>
    </Panel>
  );
}
