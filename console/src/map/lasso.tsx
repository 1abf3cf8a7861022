/** Selects the prospects inside an area that the user draws with a pointer. `Frame` does the same with the keyboard. */
import { useMutation } from "@tanstack/react-query";
import type { Map as MapLibre } from "maplibre-gl";
import { type RefObject, useEffect, useEffectEvent } from "react";
import { answer, api } from "../api/client.ts";
import type { Filter } from "../prospects/filter.ts";
import { LARGEST_PAGE } from "../prospects/queries.ts";
import { Button } from "../ui/button.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { amount } from "../ui/text.ts";
import { drawFreehand } from "./draw.ts";

/** Maximum number of ids that a bulk change accepts. */
const MOST = 10_000;

interface LassoProps {
  readonly map: MapLibre;
  readonly filter: Filter;
  readonly isDrawing: boolean;
  readonly setDrawing: (isDrawing: boolean) => void;
  readonly button: RefObject<HTMLButtonElement | null>;
  /** Called with the area that the user has drawn, and with undefined if the area selects nothing. */
  readonly onArea: (ring: readonly number[][] | undefined) => void;
  readonly onSelect: (ids: readonly number[]) => void;
}

export function Lasso({ map, filter, isDrawing, setDrawing, button, onArea, onSelect }: LassoProps) {
  const find = useMutation({
    mutationFn: (polygon: number[][]) => idsInside(filter, polygon),
    onSuccess: (ids) => {
      if (ids.length > 0) return onSelect(ids);
      onArea(undefined);
      notifyDone("No prospect is inside this area.");
    },
    onError: (error) => {
      onArea(undefined);
      notifyFailed(error);
    },
  });
  const { mutate } = find;
  const drawn = useEffectEvent(onArea);
  useEffect(() => {
    if (!isDrawing) return;
    return drawFreehand(map, (polygon) => {
      setDrawing(false);
      drawn(polygon);
      mutate(polygon);
    });
  }, [isDrawing, setDrawing, map, mutate]);
  return (
    <Button ref={button} aria-pressed={isDrawing} disabled={find.isPending} onClick={() => setDrawing(!isDrawing)}>
      {isDrawing ? "Stop selecting" : "Select an area"}
    </Button>
  );
}

/**
 * Returns the ids of the prospects inside the polygon that match the filter. The ids come from the service, because the map may show only
 * clusters.
 */
async function idsInside(filter: Filter, polygon: number[][]): Promise<number[]> {
  const { territoryId, ...rest } = filter;
  const search = { ...rest, polygon, ...(territoryId !== undefined && { territoryId: Number(territoryId) }) };
  const ids: number[] = [];
  for (let page = 1; ; page += 1) {
    const body = { filter: search, page, pageSize: LARGEST_PAGE };
    const { items, total } = await answer(api.POST("/api/prospects/search", { body }));
    if (total > MOST)
      throw new Error(`${amount(total, "prospect")} are inside. Select at most ${amount(MOST, "prospect")}.`);
    ids.push(...items.map(({ id }) => id));
    if (items.length === 0 || ids.length >= total) return ids;
  }
}
