/** Lists the routes of territories. */
import { currentDictionary, imports, indexReads, indexRows, named, newIds, territoriesChange } from "./access.ts";
import { newJob } from "./jobs.ts";
import { get, LONG_WORK, patch, post, type Route, remove } from "./route.ts";

export const territoryRoutes: readonly Route[] = [
  get("/api/territories", "territories/list", { table: { territories: ["Query"] }, streamed: true }),
  get("/api/territories.geojson", "territories/geojson", { table: { territories: ["Query"] }, streamed: true }),
  post("/api/territories", "territories/create", {
    table: { ...named, ...newIds, ...territoriesChange, territories: ["PutItem", "UpdateItem"], places: ["PutItem"] },
  }),
  post("/api/territories/import", "territories/import", {
    table: {
      ...currentDictionary,
      ...newIds,
      ...territoriesChange,
      idempotency: ["BatchGetItem"],
      territories: ["Query", "PutItem", "UpdateItem"],
      places: ["PutItem"],
    },
    rate: LONG_WORK,
  }),
  get("/api/territories/tiles/{z}/{x}/{y}", "territories/tile", {
    table: { index: ["GetItem"], territories: ["Query"] },
    streamed: true,
  }),
  get("/api/territories/{id}", "territories/get", { table: { territories: ["GetItem"], places: ["GetItem"] } }),
  patch("/api/territories/{id}", "territories/update", {
    table: { ...named, ...territoriesChange, territories: ["GetItem", "PutItem", "UpdateItem"], places: ["GetItem"] },
  }),
  remove("/api/territories/{id}", "territories/delete", {
    table: {
      ...territoriesChange,
      territories: ["GetItem", "UpdateItem", "DeleteItem"],
      places: ["GetItem", "DeleteItem"],
      deletedTerritories: ["PutItem"],
    },
  }),
  get("/api/territories/{id}/stats", "territories/stats", {
    table: { ...indexRows, places: ["GetItem"], territories: ["GetItem"] },
    streamed: true,
  }),
  post("/api/territories/{id}/runs", "territories/runs", {
    table: {
      ...indexReads,
      ...currentDictionary,
      ...imports,
      ...newIds,
      ...newJob,
      prospects: ["BatchGetItem", "Query"],
      territories: ["GetItem"],
      places: ["GetItem"],
      bulkJobs: ["BatchGetItem", "PutItem"],
    },
    files: { bulk: ["PutObject", "GetObject"] },
    bulkQueue: "send",
    rate: LONG_WORK,
  }),
];
