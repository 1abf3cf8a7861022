/** The drafts of territories. The form of a territory, the drawing on the map and the moved corners share them. */
import type { Territory } from "canvassing-client/api";
import * as limits from "../../../shared/limits.ts";
import { useDraft } from "../drafts/draft.tsx";
import { POLYGON, textOf } from "./corners.ts";

/** More than the characters of a corner: two coordinates with six decimal places. */
const CORNER = 32;
const CORNERS = limits.polygonPointsMax * CORNER;
/** More than the digits of an id. */
const ID = 20;

/** A new territory whose corners the user types has another draft than one that the user draws. */
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
