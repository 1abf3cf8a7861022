/** Imports and exports of CSV files. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { NewImport } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";
import { watchJob } from "../jobs/watch.tsx";
import { forgetProspects } from "../prospects/queries.ts";
import { notifyFailed } from "../ui/notices.tsx";

export const MATCHES = ["id", "sourceId", "emailAddress"] as const;
export const ON_MATCH = ["update", "skip", "create"] as const;

export type Mapping = NonNullable<NewImport["mapping"]>;

export interface ImportOptions {
  readonly mapping: Mapping;
  readonly matchBy: (typeof MATCHES)[number] | undefined;
  readonly onMatch: (typeof ON_MATCH)[number];
}

export interface Upload {
  readonly file: File;
  readonly options: ImportOptions;
  readonly dryRun: boolean;
}

function send({ file, options: { mapping, matchBy, onMatch }, dryRun }: Upload) {
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
      // The browser sends the form with the file in place of the text of the types.
      bodySerializer: () => form,
    }),
  );
}

export function useImport() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: async ({ dryRun }) => {
      if (dryRun) return;
      await queries.invalidateQueries({ queryKey: ["imports"] });
      await forgetProspects(queries);
    },
    onError: notifyFailed,
  });
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

/** Hides what an import has created. A job does it, which is shown as a message. */
export function useUndoImport() {
  return useMutation({
    mutationFn: (id: number) =>
      answer(api.POST("/api/prospects/imports/{id}/undo", { params: { path: { id } }, body: {} })),
    onSuccess: ({ id }) => watchJob(id),
    onError: notifyFailed,
  });
}
