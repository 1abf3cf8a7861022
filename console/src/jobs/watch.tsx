/** Shows the progress of a job that changes many prospects, and a button that undoes the job after its end. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { Job } from "canvassing-client/api";
import { useEffect } from "react";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { dismiss, notifyFailed, notifyTask } from "../ui/notices.tsx";
import { amount, numberText } from "../ui/text.ts";

export const POLL_MS = 1_000;

const isRunning = ({ state }: Job): boolean => state === "queued" || state === "running";

/** Returns true until the job has ended. A paused job has not ended, because it may continue. */
export const isUnended = (job: Job): boolean => isRunning(job) || job.state === "paused";

const useJob = (id: number) =>
  useQuery({
    queryKey: ["jobs", id],
    queryFn: () => answer(api.GET("/api/jobs/{id}", { params: { path: { id } } })),
    refetchInterval: ({ state: { data } }) => (data === undefined || isUnended(data) ? POLL_MS : false),
  });

/**
 * The ids of jobs whose end the page has not seen yet. When the page reads such a job and the job has ended, the page must load the
 * prospects again. `watchJob` adds a new job at once, because a short job may end before the page reads it for the first time.
 */
const running = new Set<number>();

/**
 * Opens a message with the progress of a job that was just created. The message stays until the user closes it or newer messages displace
 * it. If the user undoes the job, a message about the undo replaces it, because two messages would cover more of the page.
 */
export function watchJob(id: number): void {
  running.add(id);
  const undone = (undo: number): void => {
    dismiss(notice);
    watchJob(undo);
  };
  const notice = notifyTask(<JobProgress id={id} onUndone={undone} />);
}

interface ProgressProps {
  readonly id: number;
  /** Called with the id of the job that undoes this one. */
  readonly onUndone: (id: number) => void;
}

function JobProgress({ id, onUndone }: ProgressProps) {
  const { data, error } = useJob(id);
  if (error !== null) return <p>{error.message}</p>;
  if (data === undefined) return <p>The job begins …</p>;
  return <JobResult job={data} onUndone={onUndone} />;
}

/** Shows the progress of a running job, or the result of a job that has ended. */
export function JobResult({ job, onUndone }: { job: Job; onUndone: ProgressProps["onUndone"] }) {
  const { id } = job;
  const queries = useQueryClient();
  const done = !isUnended(job);
  // A job that has just ended has changed prospects, so all data of the console is loaded again. The only exception is the cached data of
  // single jobs (`["jobs", id]`): the job itself was just read, and other jobs have not changed.
  useEffect(() => {
    if (!done) running.add(id);
    else if (running.delete(id)) {
      const isOther = ([first, second]: readonly unknown[]): boolean => first !== "jobs" || second === "list";
      void queries.invalidateQueries({ predicate: ({ queryKey }) => isOther(queryKey) });
    }
  }, [id, done, queries]);
  return (
    <div className="row">
      <p>{textOf(job)}</p>
      {!done && <progress max={job.total} value={job.total - job.unprocessed} aria-label="Progress of the job" />}
      {done && job.undoableUntil !== null && job.undoneBy === null && job.changed > 0 && (
        <UndoButton job={job} onUndone={onUndone} />
      )}
    </div>
  );
}

function textOf(job: Job): string {
  const verb = job.kind === "undo" || job.kind === "import_undo" ? "restored" : "changed";
  const progress = `${numberText(job.total - job.unprocessed)} of ${amount(job.total, "prospect")} done`;
  if (isRunning(job)) return progress;
  if (job.state === "paused") return `${progress}. The job is paused.`;
  const rest = [
    job.unchanged > 0 && `${numberText(job.unchanged)} already were so`,
    job.skipped > 0 && `${numberText(job.skipped)} skipped`,
    job.failed > 0 && `${numberText(job.failed)} failed`,
  ].filter((part) => part !== false);
  const state = job.state === "completed" ? "" : ` The job is ${job.state}.`;
  return `${amount(job.changed, "prospect")} ${verb}${rest.map((part) => `, ${part}`).join("")}.${state}`;
}

function UndoButton({ job: { id }, onUndone }: { job: Job; onUndone: (id: number) => void }) {
  const undo = useChange({
    run: () => answer(api.POST("/api/jobs/{id}/undo", { params: { path: { id } }, body: {} })),
    stale: ["jobs"],
    onDone: (job) => onUndone(job.id),
    onError: notifyFailed,
  });
  return (
    <Button disabled={undo.isPending || undo.isSuccess} onClick={() => undo.mutate()}>
      Undo
    </Button>
  );
}
