/** The part of the route table that is about places: addresses and territories. */
import { caller, imports, indexEntries, newIds } from "./access.ts";
import { indexReads } from "./access-jobs.ts";
import type { Route } from "./routes.ts";

export const placeRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/addresses",
    file: "addresses/list",
    access: {
      table: { ...indexReads, addressRanges: ["Query"], addresses: ["Query"], prospects: ["BatchGetItem"] },
    },
    // 500 addresses of the longest lines.
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/addresses",
    file: "addresses/create",
    access: { table: { ...caller, ...newIds, addressRanges: ["PutItem"], addresses: ["PutItem"] } },
  },
  {
    method: "GET",
    path: "/api/addresses/{id}",
    file: "addresses/get",
    access: { table: { ...caller, ...imports, addresses: ["BatchGetItem"], prospects: ["BatchGetItem"] } },
  },
  {
    method: "PATCH",
    path: "/api/addresses/{id}",
    file: "addresses/update",
    access: {
      table: {
        ...caller,
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
    access: { table: { ...caller, territories: ["Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/territories",
    file: "territories/create",
    access: { table: { ...caller, ...newIds, territories: ["PutItem", "UpdateItem"], places: ["PutItem"] } },
  },
  {
    method: "GET",
    path: "/api/territories/{id}",
    file: "territories/get",
    access: { table: { ...caller, territories: ["GetItem"], places: ["GetItem"] } },
  },
  {
    method: "PATCH",
    path: "/api/territories/{id}",
    file: "territories/update",
    access: { table: { ...caller, territories: ["GetItem", "PutItem", "UpdateItem"], places: ["GetItem"] } },
  },
  {
    method: "DELETE",
    path: "/api/territories/{id}",
    file: "territories/delete",
    access: {
      table: {
        ...caller,
        territories: ["GetItem", "UpdateItem", "DeleteItem"],
        places: ["GetItem", "DeleteItem"],
        deletedTerritories: ["PutItem"],
      },
    },
  },
];
