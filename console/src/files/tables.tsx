/** The tables of the last imports and the last jobs that changed many prospects. The user can cancel imports, and undo imports and jobs. */
import type { ImportSummary, Job } from "canvassing-client/api";
import { useMemo } from "react";
import { nameOf, useUsers } from "../api/reference.ts";
import { JobResult, watchJob } from "../jobs/watch.tsx";
import { Badge, type BadgeKinds } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { numberText, timeText } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { isUnfinished, useCancelImport, useImports, useJobs, useUndoImport } from "./queries.ts";

const kinds: BadgeKinds = {
  awaiting_upload: "warn",
  running: "plain",
  completed: "good",
  failed: "bad",
  cancelled: "warn",
};

function Actions({ id, state, dryRun, imported, createdAt }: ImportSummary) {
  const undo = useUndoImport();
  const cancel = useCancelImport();
  if (isUnfinished({ state })) {
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
  if (state !== "completed" || dryRun || imported === 0) return null;
  return (
    <Button kind="quiet" disabled={undo.isPending || undo.isSuccess} onClick={() => undo.mutate(id)}>
      Undo
    </Button>
  );
}

const columnsOf = (users: ReadonlyMap<number, string>): readonly Column<ImportSummary>[] => [
  { id: "created", header: "Started", cell: ({ createdAt }) => <Time iso={createdAt} /> },
  { id: "by", header: "By", minor: true, cell: ({ createdByUserId }) => users.get(createdByUserId) },
  {
    id: "state",
    header: "State",
    cell: ({ state, dryRun }) => (
      <Badge kind={kinds[state]}>{dryRun ? `${state}, a trial` : state.replace("_", " ")}</Badge>
    ),
  },
  { id: "imported", header: "Created", align: "right", cell: ({ imported }) => numberText(imported) },
  { id: "updated", header: "Updated", align: "right", cell: ({ updated }) => numberText(updated) },
  { id: "skipped", header: "Skipped", align: "right", cell: ({ skipped }) => numberText(skipped) },
  { id: "undo", header: "Actions", isQuiet: true, cell: (summary) => <Actions {...summary} /> },
];

export function ImportTable() {
  const query = useImports();
  const users = useUsers().data;
  const columns = useMemo(() => columnsOf(new Map(users?.map((user) => [user.id, nameOf(user)]))), [users]);
  return (
    <Panel title="Last imports">
      <Answer query={query} what="the imports">
        {({ items }) => (
          <DataTable
            label="Last imports"
            columns={columns}
            rows={items}
            empty={<p>Nothing has been imported yet.</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}

const labels: Readonly<Record<string, string>> = {
  prospect_bulk: "Bulk change",
  territory_run: "Assignment of a territory",
  undo: "Undo",
  import_undo: "Undo of an import",
};

const jobColumns = [
  { id: "created", header: "Started", cell: ({ createdAt }: Job) => <Time iso={createdAt} /> },
  { id: "kind", header: "Job", cell: ({ kind }: Job) => labels[kind] ?? kind },
  {
    id: "by",
    header: "By",
    minor: true,
    cell: ({ createdBy }: Job) => (createdBy === null ? "" : nameOf(createdBy)),
  },
  { id: "result", header: "Result", cell: (job: Job) => <JobResult job={job} onUndone={watchJob} /> },
];

export function JobTable() {
  const query = useJobs();
  return (
    <Panel title="Jobs">
      <Answer query={query} what="the jobs">
        {({ items }) => (
          <DataTable label="Jobs" columns={jobColumns} rows={items} empty={<p>No job has changed prospects yet.</p>} />
        )}
      </Answer>
    </Panel>
  );
}
