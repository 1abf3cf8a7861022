/** Reads reports on activity, and the number of prospects with each status. */
import { useQueries, useQuery } from "@tanstack/react-query";
import type { operations, Status } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";
import { useStatuses } from "../api/reference.ts";
import { dateText } from "../ui/text.ts";

const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const DAY_MS = 86_400_000;

type GroupBy = NonNullable<NonNullable<operations["reportsActivity"]["parameters"]["query"]>["groupBy"]>;

/** A range of dates such as `2026-11-23`, in the user's time zone. Both dates belong to the range. */
export interface Range {
  readonly from: string;
  readonly to: string;
}

/** Returns the date of `time` (milliseconds since 1970) in the user's time zone, for example `2026-11-23`. */
const dateOf = (time: number): string => new Intl.DateTimeFormat("en-CA", { timeZone: timezone }).format(time);

/** Returns the date that is `days` days after `date`. The calculation is in UTC, because each day has 24 hours there. */
const later = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);

/** Returns the range of the last `days` days. Its last day is today. */
export function rangeOf(days: number): Range {
  const to = dateOf(Date.now());
  return { from: later(to, 1 - days), to };
}

/** Returns the text of a date such as `2026-11-23`. Without a time, the date would be midnight in UTC, in America the evening before. */
export const dayText = (date: string): string => dateText(`${date}T12:00`);

export const daysOf = ({ from, to }: Range): string[] =>
  Array.from({ length: Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1 }, (_, index) =>
    later(from, index),
  );

/** Maximum number of columns in the chart of a user. Each column is a period, for which the page sends a request. */
const MOST_PERIODS = 13;

/** Returns the length, in days, of the periods into which `periodsOf` divides the last `days` days. */
export const periodDays = (days: number): number => Math.ceil(days / MOST_PERIODS);

/** Divides the last `days` days into periods of equal length, the oldest first. Only the first period may be shorter. */
export function periodsOf(days: number): Range[] {
  const { from, to } = rangeOf(days);
  const length = periodDays(days);
  return Array.from({ length: Math.ceil(days / length) }, (_, index) => {
    const end = later(to, -index * length);
    const start = later(end, 1 - length);
    return { from: start < from ? from : start, to: end };
  }).reverse();
}

const reportQuery = ({ from, to }: Range, groupBy: GroupBy) => ({
  queryKey: ["activity", from, to, groupBy],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(api.GET("/api/reports/activity", { params: { query: { from, to, groupBy, timezone } }, signal })),
});

export const useReport = (days: number, groupBy: GroupBy) => useQuery(reportQuery(rangeOf(days), groupBy));

/** Reads a report by user for each period, because no report of the API is divided by user and also by day. */
export const useReports = (periods: readonly Range[]) =>
  useQueries({
    queries: periods.map((period) => reportQuery(period, "user")),
    combine: (all) => ({
      data: all.some(({ data }) => data === undefined) ? undefined : all.flatMap(({ data }) => data ?? []),
      error: all.find(({ data, error }) => data === undefined && error !== null)?.error ?? null,
      refetch: () => all.forEach(({ refetch }) => void refetch()),
    }),
  });

/** Maximum number of statuses whose prospects are counted. Each status needs one request. */
const MOST_STATUSES = 20;

interface StatusCounts {
  readonly statuses: readonly (Pick<Status, "id" | "value" | "color"> & { readonly count: number })[];
  readonly total: number;
}

/** Counts the prospects that the user may see: all of them, and those with each of the first `MOST_STATUSES` active statuses. */
export function useStatusCounts() {
  const statuses = useStatuses().data;
  return useQuery({
    queryKey: ["prospects", "status-counts", statuses],
    enabled: statuses !== undefined,
    queryFn: async ({ signal }): Promise<StatusCounts> => {
      const count = async (filter: { status?: string }): Promise<number> => {
        const query = { ...filter, pageSize: 1 };
        return (await answer(api.GET("/api/prospects", { params: { query }, signal }))).total;
      };
      const shown = (statuses ?? []).filter(({ isActive }) => isActive).slice(0, MOST_STATUSES);
      const [total, ...counts] = await Promise.all([count({}), ...shown.map(({ value }) => count({ status: value }))]);
      return {
        total,
        statuses: shown.map(({ id, value, color }, index) => ({ id, value, color, count: counts[index] ?? 0 })),
      };
    },
  });
}
