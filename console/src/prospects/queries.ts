/** Reads prospects. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client.ts";
import type { Filter } from "./filter.ts";

/** The maximum page size of the API. */
export const LARGEST_PAGE = 500;

/** The filters, and `bbox`: the part of the map in which the prospects must be, as `west,south,east,north`. */
export type PlacedFilter = Filter & { readonly bbox?: string };

export const useProspects = (filter: PlacedFilter, page: number, pageSize: number) =>
  useQuery({
    queryKey: ["prospects", "list", filter, page, pageSize],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/prospects", { params: { query: { ...filter, page, pageSize } }, signal })),
    placeholderData: keepPreviousData,
  });

export const useProspect = (id: number) =>
  useQuery({
    queryKey: ["prospects", "one", id],
    queryFn: ({ signal }) => answer(api.GET("/api/prospects/{id}", { params: { path: { id } }, signal })),
  });

/**
 * The beginning of the query keys of all data on prospects. All this data is loaded again after a change of one prospect, because lists,
 * maps and counts may be out of date.
 */
export const PROSPECTS = ["prospects"] as const;
