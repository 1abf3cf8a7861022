/** Changes territories. The caller shows the error of the returned mutation. */
import type { Territory, TerritoryPatch } from "canvassing-client/api";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";

/** A change of a territory also changes which prospects are inside. */
const stale = ["territories", "prospects"];

/** Saves a new territory, or the changed fields of one that exists. */
export const useSave = (id: number | undefined, onDone: (territory: Territory) => void) =>
  useChange({
    run: (body: TerritoryPatch) =>
      id === undefined
        ? answer(api.POST("/api/territories", { body }))
        : answer(api.PATCH("/api/territories/{id}", { params: { path: { id } }, body })),
    stale,
    onDone,
  });

export const useDelete = (id: number, onDone: () => void) =>
  useChange({
    run: () => answer(api.DELETE("/api/territories/{id}", { params: { path: { id } } })),
    stale,
    onDone,
  });
