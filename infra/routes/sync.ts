/** Lists the routes for apps that keep a copy of the data and are often offline. */
import { currentDictionary, imports, indexEntries, indexRows, newIds } from "./access.ts";
import { get, post, type Route } from "./route.ts";

export const syncRoutes: readonly Route[] = [
  post("/api/sync/operations", "sync/operations", {
    table: {
      ...imports,
      ...newIds,
      ...indexEntries,
      ...currentDictionary,
      prospects: ["GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem"],
      prospectRanges: ["PutItem"],
      addressRanges: ["PutItem"],
      addresses: ["BatchGetItem", "PutItem", "UpdateItem"],
      places: ["GetItem", "PutItem"],
      calendar: ["PutItem", "DeleteItem"],
      agendas: ["GetItem", "PutItem", "DeleteItem"],
      receipts: ["GetItem", "PutItem"],
      clientRecords: ["BatchGetItem", "PutItem"],
    },
  }),
  get("/api/changes", "sync/changes", {
    table: {
      ...indexRows,
      agendas: ["Query"],
      calendar: ["Query"],
      territories: ["GetItem", "BatchGetItem", "Query"],
      changeLog: ["Query"],
      prospects: ["BatchGetItem", "Query"],
      cursorDataKeys: ["GetItem", "PutItem"],
    },
    cursors: "make",
    streamed: true,
  }),
];
