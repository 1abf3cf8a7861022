/** Shows the progress of a job that changes many prospects, and a button that undoes the job after its end. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Job } from "canvassing-client/api";
import { useEffect, useRef, useState } from "react";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { notifyFailed, notifyTask } from "../ui/notices.tsx";
import { amount, numberText } from "../ui/text.ts";
import style from "./watch.module.css";

const POLL_MS = 1_000;

const isRunning = ({ state }: Job): boolean => state === "queued" || state === "running";

export const useJob = (id: number) =>
  useQuery({
    queryKey: ["jobs", id],
    queryFn: () => answer(api.GET("/api/jobs/{id}", { params: { path: { id } } })),
    refetchInterval: ({ state: { data } }) => (data === undefined || isRunning(data) ? POLL_MS : false),
  });

/** Opens a message with the progress of the job. The message stays until the user closes it or newer messages displace it. */
export const watchJob = (id: number): void => notifyTask(<WatchedJob id={id} />);

/** After an undo, the same message shows the progress of the undo. Two messages would cover more of the page. */
function WatchedJob({ id }: { id: number }) {
  const [shown, setShown] = useState(id);
  return <JobProgress key={shown} id={shown} isNew onUndone={setShown} />;
}

interface ProgressProps {
  readonly id: number;
  /** True if the job has just been created. It may have ended before its state is read for the first time. */
  readonly isNew: boolean;
  /** Called with the id of the job that undoes this one. */
  readonly onUndone: (id: number) => void;
}

export function JobProgress({ id, isNew, onUndone }: ProgressProps) {
  const query = useJob(id);
  const queries = useQueryClient();
  const job = query.data;
  const done = job !== undefined && !isRunning(job);
  const wasRunning = useRef(isNew);
  // A job that has just finished has changed prospects, so all data except the jobs is loaded again.
  useEffect(() => {
    if (job === undefined) return;
    if (done && wasRunning.current) {
      void queries.invalidateQueries({ predicate: ({ queryKey: [first] }) => first !== "jobs" });
    }
    wasRunning.current = !done;
  }, [job, done, queries]);
  if (query.error !== null) return <p>{query.error.message}</p>;
  if (job === undefined) return <p>The job begins …</p>;
  return (
    <div className={style.job}>
      <p>{textOf(job)}</p>
      {isRunning(job) && (
        <progress max={job.total} value={job.total - job.unprocessed} aria-label="Progress of the job" />
      )}
      {done && job.undoableUntil !== null && job.undoneBy === null && job.changed > 0 && (
        <UndoButton job={job} onUndone={onUndone} />
      )}
    </div>
  );
}

function textOf(job: Job): string {
  const verb = job.kind === "undo" || job.kind === "import_undo" ? "restored" : "changed";
  if (isRunning(job)) return `${numberText(job.total - job.unprocessed)} of ${amount(job.total, "prospect")} done`;
  const rest = [
    job.unchanged > 0 && `${numberText(job.unchanged)} already were so`,
    job.skipped > 0 && `${numberText(job.skipped)} skipped`,
    job.failed > 0 && `${numberText(job.failed)} failed`,
  ].filter((part) => part !== false);
  const state = job.state === "completed" ? "" : ` The job is ${job.state}.`;
  return `${amount(job.changed, "prospect")} ${verb}${rest.map((part) => `, ${part}`).join("")}.${state}`;
}

function UndoButton({ job: { id }, onUndone }: { job: Job; onUndone: (id: number) => void }) {
  const queries = useQueryClient();
  const undo = useMutation({
    mutationFn: () => answer(api.POST("/api/jobs/{id}/undo", { params: { path: { id } }, body: {} })),
    onSuccess: (job) => {
      onUndone(job.id);
      return queries.invalidateQueries({ queryKey: ["jobs", id] });
    },
    onError: notifyFailed,
  });
  return (
    <Button disabled={undo.isPending || undo.isSuccess} onClick={() => undo.mutate()}>
      Undo
    </Button>
  );
}
