/** Hooks that import CSV files, undo imports, and read the lists of imports and jobs. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ImportSummary } from "canvassing-client/api";
import { useRef, useState } from "react";
import { useChange } from "../api/change.ts";
import { answer, api, RequestFailed } from "../api/client.ts";
import { isUnended, POLL_MS, watchJob } from "../jobs/watch.tsx";
import { notifyFailed, notifyTask } from "../ui/notices.tsx";
import { amount } from "../ui/text.ts";
import type { ImportOutcome, ImportRequest } from "./import-request.ts";
import { ImportCancelled, importByJob, type Progress } from "./large-import.ts";

/** A file within both limits is imported with one request. A job imports a larger file. */
const MOST_BYTES = 4_000_000;
const MOST_LINES = 2_000;
/** Maximum bytes of a file that a job imports. */
export const JOB_BYTES = 200_000_000;

async function needsJob(file: File): Promise<boolean> {
  return file.size > MOST_BYTES || (await file.text()).split("\n").length > MOST_LINES;
}

function importAtOnce({ file, options: { mapping, matchBy, onMatch }, dryRun }: ImportRequest): Promise<ImportOutcome> {
  const form = new FormData();
  form.set("file", file);
  return answer(
    api.POST("/api/prospects/import", {
      params: {
        query: {
          dryRun: dryRun ? "true" : "false",
          ...(Object.keys(mapping).length > 0 && { mapping: JSON.stringify(mapping) }),
          ...(matchBy !== undefined && { matchBy, onMatch }),
        },
      },
      body: { file: "" },
      // The generated types require this `body`, in which the file is a string. `bodySerializer` replaces it with the form that contains
      // the file.
      bodySerializer: () => form,
    }),
  );
}

/**
 * Returns true if a job must import the file instead. 413 means that the file has too many changes for one request, which only the service
 * knows. 503 and 504 mean that the time of one request was too short. After 503 and 504, a job repeats only a dry run, because an import
 * may already have written rows.
 */
const isTooMuchForRequest = (error: unknown, { dryRun }: ImportRequest): boolean =>
  error instanceof RequestFailed && (error.status === 413 || (dryRun && [503, 504].includes(error.status)));

export function useImport() {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<Progress>();
  const stopping = useRef(new AbortController());
  const send = useMutation({
    mutationFn: async (request: ImportRequest) => {
      stopping.current = new AbortController();
      setProgress({ text: `Reading ${request.file.name} …`, share: undefined });
      if (await needsJob(request.file)) return importByJob(request, setProgress, stopping.current.signal);
      try {
        return await importAtOnce(request);
      } catch (error) {
        if (!isTooMuchForRequest(error, request)) throw error;
        return importByJob(request, setProgress, stopping.current.signal);
      }
    },
    onSuccess: async ({ dryRun }) => {
      if (dryRun) return;
      for (const first of ["imports", "prospects"]) await queries.invalidateQueries({ queryKey: [first] });
    },
    onError: (error) => {
      if (!(error instanceof ImportCancelled)) notifyFailed(error);
    },
  });
  return {
    send,
    progress: send.isPending ? progress : undefined,
    /** Stops an upload that is running. Call this after a request has cancelled the import job. */
    stopUpload: () => stopping.current.abort(),
  };
}

/** Cancels an import job, and then shows a message that says which changes of the import remain. */
export const useCancelImport = (onCancelled?: () => void) =>
  useChange({
    run: (id: number) => answer(api.POST("/api/prospects/imports/{id}/cancel", { params: { path: { id } } })),
    stale: ["imports", "prospects"],
    onDone: (summary) => {
      onCancelled?.();
      notifyTask(remainderOf(summary));
    },
    onError: notifyFailed,
  });

function remainderOf({ dryRun, updated }: ImportSummary): string {
  if (dryRun) return "The check is cancelled. Nothing was written.";
  const start = "The import is cancelled. It creates no prospects.";
  // The job stores the number of updated prospects only every few seconds, so it may have updated more than this number.
  if (updated > 0) return `${start} It has updated at least ${amount(updated, "prospect")}. These updates remain.`;
  return `${start} If it has already updated prospects, these updates remain.`;
}

const RUNNING_POLL_MS = 3_000;

/** Returns true for an import that has not ended. */
export const isUnfinished = ({ state }: Pick<ImportSummary, "state">): boolean =>
  state === "awaiting_upload" || state === "running";

export const useImports = () =>
  useQuery({
    queryKey: ["imports"],
    queryFn: () => answer(api.GET("/api/prospects/imports", { params: { query: { limit: 20 } } })),
    refetchInterval: ({ state: { data } }) => (data?.items.some(isUnfinished) === true ? RUNNING_POLL_MS : false),
  });

export const useJobs = () =>
  useQuery({
    queryKey: ["jobs", "list"],
    queryFn: () => answer(api.GET("/api/jobs", { params: { query: { limit: 20 } } })),
    refetchInterval: ({ state: { data } }) => (data?.items.some(isUnended) === true ? POLL_MS : false),
  });

/** Starts a job that undoes an import: the job hides the prospects that the import created. A message shows the progress of the job. */
export const useUndoImport = () =>
  useChange({
    run: (id: number) => answer(api.POST("/api/prospects/imports/{id}/undo", { params: { path: { id } }, body: {} })),
    stale: ["jobs"],
    onDone: ({ id }) => watchJob(id),
    onError: notifyFailed,
  });
