/** The part of the route table that is about prospects themselves. */
import { caller, dictionary, indexEntries, newIds, type TableAccess } from "./access.ts";
import type { Route } from "./routes.ts";

const prospectWrites: TableAccess = {
  ...dictionary,
  ...newIds,
  ...indexEntries,
  prospects: ["GetItem", "PutItem", "Query"],
  addressRanges: ["PutItem"],
  addresses: ["GetItem", "PutItem", "UpdateItem"],
};
/** Finds prospects in the company index. */
const indexReads: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["GetItem", "Query"],
  segments: ["BatchGetItem"],
};

export const prospectRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/prospects",
    file: "prospects/list",
    access: { table: { ...indexReads, prospects: ["BatchGetItem", "Query"] } },
    streamed: true,
  },
  {
    method: "GET",
    path: "/api/prospects/pins",
    file: "prospects/pins",
    access: { table: indexReads },
    streamed: true,
  },
  {
    method: "GET",
    path: "/api/prospects/export",
    file: "prospects/export",
    access: { table: { ...indexReads, prospects: ["Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/prospects",
    file: "prospects/create",
    access: {
      table: {
        ...prospectWrites,
        reference: ["GetItem", "Query", "ConditionCheckItem"],
        prospects: ["PutItem"],
        prospectRanges: ["PutItem"],
      },
    },
  },
  {
    method: "GET",
    path: "/api/prospects/{id}",
    file: "prospects/get",
    access: { table: { ...dictionary, prospects: ["Query"] } },
    streamed: true,
  },
  { method: "PATCH", path: "/api/prospects/{id}", file: "prospects/update", access: { table: prospectWrites } },
  {
    method: "DELETE",
    path: "/api/prospects/{id}",
    file: "prospects/delete",
    access: { table: { ...caller, ...indexEntries, prospects: ["GetItem", "PutItem"] } },
  },
  {
    method: "PUT",
    path: "/api/prospects/{id}/tags",
    file: "prospects/tags",
    access: { table: { ...dictionary, ...indexEntries, prospects: ["GetItem", "Query", "PutItem"] } },
  },
];
