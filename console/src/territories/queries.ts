/** Changes territories. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Territory, TerritoryPatch } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";

/** Saves a new territory, or the changed fields of one that exists. The caller shows the error of the returned mutation. */
export function useSave(id: number | undefined, onSaved: (territory: Territory) => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: TerritoryPatch) =>
      id === undefined
        ? answer(api.POST("/api/territories", { body }))
        : answer(api.PATCH("/api/territories/{id}", { params: { path: { id } }, body })),
    onSuccess: async (territory) => {
      await queries.invalidateQueries({ queryKey: ["territories"] });
      await queries.invalidateQueries({ queryKey: ["prospects", "territory-stats"] });
      onSaved(territory);
    },
  });
}

/** Deletes a territory. The caller shows the error of the returned mutation. */
export function useDelete(onDeleted: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => answer(api.DELETE("/api/territories/{id}", { params: { path: { id } } })),
    onSuccess: async () => {
      onDeleted();
      await queries.invalidateQueries({ queryKey: ["territories"] });
    },
  });
}
