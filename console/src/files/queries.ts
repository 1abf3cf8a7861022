/** Hooks that import CSV files, undo imports, and read the lists of imports and jobs. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { watchJob } from "../jobs/watch.tsx";
import { forgetProspects } from "../prospects/queries.ts";
import { notifyFailed } from "../ui/notices.tsx";
import type { ImportOutcome, ImportRequest } from "./import-request.ts";
import { importByJob, type Progress } from "./large-import.ts";

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
      // `body` is there only because the generated types describe the file as a string. The browser sends this form, which contains the
      // file.
      bodySerializer: () => form,
    }),
  );
}

export function useImport() {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<Progress>();
  const send = useMutation({
    mutationFn: async (request: ImportRequest) => {
      setProgress({ text: `Reading ${request.file.name} …`, share: undefined });
      return (await needsJob(request.file)) ? importByJob(request, setProgress) : importAtOnce(request);
    },
    onSuccess: async ({ dryRun }) => {
      if (dryRun) return;
      await queries.invalidateQueries({ queryKey: ["imports"] });
      await forgetProspects(queries);
    },
    onError: notifyFailed,
  });
  return { send, progress: send.isPending ? progress : undefined };
}

export const useImports = () =>
  useQuery({
    queryKey: ["imports"],
    queryFn: () => answer(api.GET("/api/prospects/imports", { params: { query: { limit: 20 } } })),
  });

export const useJobs = () =>
  useQuery({
    queryKey: ["jobs", "list"],
    queryFn: () => answer(api.GET("/api/jobs", { params: { query: { limit: 20 } } })),
  });

/** Hides the prospects that an import has created. A job does this, and a message shows its progress. */
export function useUndoImport() {
  return useMutation({
    mutationFn: (id: number) =>
      answer(api.POST("/api/prospects/imports/{id}/undo", { params: { path: { id } }, body: {} })),
    onSuccess: ({ id }) => watchJob(id),
    onError: notifyFailed,
  });
}
