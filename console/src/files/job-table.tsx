/** The last jobs that changed many prospects. The user can undo a job here. */
import type { Job } from "canvassing-client/api";
import { nameOf } from "../api/reference.ts";
import { JobResult, watchJob } from "../jobs/watch.tsx";
import { DataTable } from "../ui/data-table.tsx";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { Time } from "../ui/time.tsx";
import { useJobs } from "./queries.ts";

const labels: Readonly<Record<string, string>> = {
  prospect_bulk: "Bulk change",
  territory_run: "Assignment of a territory",
  undo: "Undo",
  import_undo: "Undo of an import",
};

const columns = [
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
          <DataTable
            label="Jobs"
            columns={columns}
            rows={items}
            rowKey={({ id }) => id}
            empty={<p>No job has changed prospects yet.</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}
