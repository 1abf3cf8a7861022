/** Reads what the map shows: all pins of few prospects, or the clusters of the visible part of many. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client.ts";
import type { Filter } from "../prospects/filter.ts";
import type { Bounds } from "./canvas.tsx";

/** Up to this number, the map loads every pin at once. Above it, it loads the clusters of the visible part. */
export const MOST_PINS = 5_000;

export const useCount = (filter: Filter) =>
  useQuery({
    queryKey: ["prospects", "count", filter],
    queryFn: async ({ signal }) => {
      const page = api.GET("/api/prospects", { params: { query: { ...filter, pageSize: 1 } }, signal });
      return (await answer(page)).total;
    },
    placeholderData: keepPreviousData,
  });

export const usePins = (filter: Filter, isEnabled: boolean) =>
  useQuery({
    queryKey: ["prospects", "pins", filter],
    queryFn: ({ signal }) => answer(api.GET("/api/prospects/pins", { params: { query: filter }, signal })),
    enabled: isEnabled,
    placeholderData: keepPreviousData,
  });

/** The visible part of the map. */
export interface View {
  readonly bounds: Bounds;
  readonly zoom: number;
}

export const useClusters = (filter: Filter, view: View | undefined, isEnabled: boolean) =>
  useQuery({
    queryKey: ["prospects", "clusters", filter, view],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/prospects/clusters", {
          params: { query: { ...filter, bbox: view?.bounds.join() ?? "", zoom: view?.zoom ?? 0 } },
          signal,
        }),
      ),
    enabled: isEnabled && view !== undefined,
    placeholderData: keepPreviousData,
  });
