/** Changes of territories: their drafts, and the requests that save and delete them. */
import type { Territory, TerritoryPatch } from "canvassing-client/api";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { useDraft } from "../drafts/draft.tsx";
import { POLYGON, textOf } from "./corners.ts";

/** Maximum characters of a corner in a draft. Two coordinates with six decimal places have fewer. */
const CORNER = 32;
const CORNERS = limits.polygonPointsMax * CORNER;
/** Maximum characters of an id in a draft. Each id has fewer digits. */
const ID = 20;

/** What is edited. A new territory whose corners the user types has a different draft from one that the user draws. */
export type Edited = Territory | "typed" | "drawn";

export function useTerritoryDraft(edited: Edited) {
  const territory = typeof edited === "string" ? undefined : edited;
  const path = territory === undefined ? "/territories" : `/territories?territory=${territory.id}`;
  const title = territory === undefined ? "New territory" : `Territory ${territory.name}`;
  return useDraft(
    { record: `territory:${territory?.id ?? edited}`, title, path },
    {
      name: [territory?.name ?? "", limits.name],
      assignedToUserId: [String(territory?.assignedToUserId ?? ""), ID],
      [POLYGON]: [textOf(territory?.polygon ?? []), CORNERS],
    },
  );
}

/** The data to load again after a change of a territory. The change may also decide which prospects are inside. */
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
