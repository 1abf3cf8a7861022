/** The filters of prospects. They are in the URL of the page, so that a link or the back button shows the same prospects. */
import { useMemo } from "react";
import { useSearchParams } from "wouter";

/** The filter parameters of `GET /api/prospects` that the console offers. */
export const filterNames = [
  "search",
  "status",
  "assignedToUserId",
  "tagId",
  "city",
  "territoryId",
  "dateFrom",
  "dateTo",
] as const;

/** A change of one of these parameters adds an entry to the browser's history. */
const STEPS = ["prospect", "page"] as const;
/** The parameter with the center and the zoom of the map (map/camera.ts). */
export const AT = "at";

export type FilterName = (typeof filterNames)[number];
export type Filter = { readonly [name in FilterName]?: string };

function readFilter(parameters: URLSearchParams): Filter {
  return Object.fromEntries(filterNames.flatMap((name) => [[name, parameters.get(name)?.trim()]]).filter(([, v]) => v));
}

export interface FilterState {
  readonly filter: Filter;
  /**
   * Sets query parameters of the page's URL. A parameter with an undefined or empty value is removed. If a filter changes, `page` and
   * `AT` are also removed, so that the list begins at the first page, and the map shows all prospects that match. A new page or prospect
   * adds an entry to the browser's history, so that Back shows the previous page or prospect.
   */
  readonly change: (values: Readonly<Record<string, string | undefined>>) => void;
  readonly parameters: URLSearchParams;
}

export function useFilter(): FilterState {
  const [parameters, setParameters] = useSearchParams();
  const text = parameters.toString();
  const filter = useMemo(() => readFilter(new URLSearchParams(text)), [text]);
  return {
    filter,
    parameters,
    change: (values) => {
      if (Object.entries(values).every(([name, value]) => (parameters.get(name) ?? "") === (value ?? ""))) return;
      setParameters(
        (before) => {
          const after = new URLSearchParams(before);
          if (filterNames.some((name) => name in values)) for (const name of ["page", AT]) after.delete(name);
          for (const [name, value] of Object.entries(values)) {
            if (value === undefined || value === "") after.delete(name);
            else after.set(name, value);
          }
          return after;
        },
        { replace: !STEPS.some((name) => name in values) || "sort" in values },
      );
    },
  };
}

/** Returns the path with the filters as its query. */
export function withFilter(path: string, filter: Filter): string {
  const query = new URLSearchParams(Object.entries(filter)).toString();
  return query === "" ? path : `${path}?${query}`;
}

export const listOf = (value: string | undefined): readonly string[] => (value === undefined ? [] : value.split(","));

/** Returns the comma-separated list with the value added, or without the value if the list already contains it. */
export function toggled(list: string | undefined, value: string): string {
  const values = listOf(list);
  return (values.includes(value) ? values.filter((one) => one !== value) : [...values, value]).join(",");
}
