/** Lists the routes of reports. */
import { currentDictionary, indexRows } from "./access.ts";
import type { Route } from "./route.ts";

export const reportRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/reports/activity",
    file: "reports/activity",
    access: {
      table: {
        ...indexRows,
        ...currentDictionary,
        factLog: ["Query"],
        dayFacts: ["Query"],
        territories: ["Query"],
      },
    },
    streamed: true,
  },
];
