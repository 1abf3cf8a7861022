/** Lists the routes of territories. */
import { currentDictionary, imports, indexReads, indexRows, named, newIds, territoriesChange } from "./access.ts";
import { newJob } from "./jobs.ts";
import { LONG_WORK } from "./prospects.ts";
import type { Route } from "./route.ts";

export const territoryRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/territories",
    file: "territories/list",
    access: { table: { territories: ["Query"] } },
    streamed: true,
  },
  {
    method: "GET",
    path: "/api/territories.geojson",
    file: "territories/geojson",
    access: { table: { territories: ["Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/territories",
    file: "territories/create",
    access: {
      table: { ...named, ...newIds, ...territoriesChange, territories: ["PutItem", "UpdateItem"], places: ["PutItem"] },
    },
  },
  {
    method: "POST",
    path: "/api/territories/import",
    file: "territories/import",
    access: {
      table: {
        ...currentDictionary,
        ...newIds,
        ...territoriesChange,
        idempotency: ["BatchGetItem"],
        territories: ["Query", "PutItem", "UpdateItem"],
        places: ["PutItem"],
      },
    },
    rate: LONG_WORK,
  },
  {
    method: "GET",
    path: "/api/territories/tiles/{z}/{x}/{y}",
    file: "territories/tile",
    access: { table: { index: ["GetItem"], territories: ["Query"] } },
    streamed: true,
  },
  {
    method: "GET",
    path: "/api/territories/{id}",
    file: "territories/get",
    access: { table: { territories: ["GetItem"], places: ["GetItem"] } },
  },
  {
    method: "PATCH",
    path: "/api/territories/{id}",
    file: "territories/update",
    access: {
      table: { ...named, ...territoriesChange, territories: ["GetItem", "PutItem", "UpdateItem"], places: ["GetItem"] },
    },
  },
  {
    method: "DELETE",
    path: "/api/territories/{id}",
    file: "territories/delete",
    access: {
      table: {
        ...territoriesChange,
        territories: ["GetItem", "UpdateItem", "DeleteItem"],
        places: ["GetItem", "DeleteItem"],
        deletedTerritories: ["PutItem"],
      },
    },
  },
  {
    method: "GET",
    path: "/api/territories/{id}/stats",
    file: "territories/stats",
    access: { table: { ...indexRows, places: ["GetItem"], territories: ["GetItem"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/territories/{id}/runs",
    file: "territories/runs",
    access: {
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
    },
    rate: LONG_WORK,
  },
];
