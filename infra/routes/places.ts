/** The part of the route table that is about places: addresses and territories. */
import { imports, indexEntries, named, newIds } from "./access.ts";
import { indexRows } from "./access-jobs.ts";
import type { Route } from "./route.ts";

export const placeRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/addresses",
    file: "addresses/list",
    access: {
      table: { ...indexRows, addressRanges: ["Query"], addresses: ["Query"], prospects: ["BatchGetItem"] },
    },
    // 500 addresses of the longest lines.
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/addresses",
    file: "addresses/create",
    access: { table: { ...newIds, addressRanges: ["PutItem"], addresses: ["PutItem"] } },
  },
  {
    method: "GET",
    path: "/api/addresses/{id}",
    file: "addresses/get",
    access: { table: { ...imports, addresses: ["BatchGetItem"], prospects: ["BatchGetItem"] } },
  },
  {
    method: "PATCH",
    path: "/api/addresses/{id}",
    file: "addresses/update",
    access: {
      table: {
        ...imports,
        ...indexEntries,
        addresses: ["BatchGetItem", "PutItem", "UpdateItem", "ConditionCheckItem"],
        prospects: ["BatchGetItem", "PutItem"],
      },
    },
  },

  {
    method: "GET",
    path: "/api/territories",
    file: "territories/list",
    access: { table: { territories: ["Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/territories",
    file: "territories/create",
    access: { table: { ...named, ...newIds, territories: ["PutItem", "UpdateItem"], places: ["PutItem"] } },
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
    access: { table: { ...named, territories: ["GetItem", "PutItem", "UpdateItem"], places: ["GetItem"] } },
  },
  {
    method: "DELETE",
    path: "/api/territories/{id}",
    file: "territories/delete",
    access: {
      table: {
        territories: ["GetItem", "UpdateItem", "DeleteItem"],
        places: ["GetItem", "DeleteItem"],
        deletedTerritories: ["PutItem"],
      },
    },
  },
];
