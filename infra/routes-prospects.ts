/** The part of the route table that is about prospects themselves. */
import { caller, dictionary, imports, indexEntries, newIds, type TableAccess } from "./access.ts";
import type { Route } from "./routes.ts";

const prospectWrites: TableAccess = {
  ...dictionary,
  ...newIds,
  ...indexEntries,
  prospects: ["GetItem", "PutItem", "Query"],
  addressRanges: ["PutItem"],
  addresses: ["BatchGetItem", "PutItem", "UpdateItem"],
  ...imports,
};
/** Finds prospects in the company index. */
const indexReads: TableAccess = {
  ...dictionary,
  index: ["Query"],
  manifests: ["BatchGetItem", "Query"],
  segments: ["BatchGetItem"],
};

/** Rows in bulk, the run of the index that makes them visible, and whatever an import that came to nothing has left. */
const importWrites: TableAccess = {
  ...newIds,
  identity: ["GetItem"],
  reference: ["GetItem", "Query", "PutItem", "UpdateItem"],
  imports: ["GetItem", "PutItem", "UpdateItem"],
  openImports: ["Query", "PutItem", "DeleteItem", "BatchWriteItem"],
  prospectRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
  prospects: ["Query", "BatchWriteItem"],
  addressRanges: ["PutItem", "UpdateItem", "BatchWriteItem"],
  addresses: ["BatchWriteItem"],
  places: ["BatchWriteItem"],
  index: ["Query", "UpdateItem"],
  manifests: ["Query", "BatchWriteItem"],
  segments: ["Query", "BatchWriteItem"],
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
    method: "POST",
    path: "/api/prospects/import",
    file: "prospects/import",
    access: { table: importWrites, files: ["PutObject"] },
  },
  {
    method: "GET",
    path: "/api/prospects/imports/{id}",
    file: "imports/get",
    access: { table: { ...caller, ...imports } },
  },
  {
    method: "GET",
    path: "/api/prospects/{id}",
    file: "prospects/get",
    access: { table: { ...dictionary, ...imports, prospects: ["Query"] } },
    streamed: true,
  },
  { method: "PATCH", path: "/api/prospects/{id}", file: "prospects/update", access: { table: prospectWrites } },
  {
    method: "DELETE",
    path: "/api/prospects/{id}",
    file: "prospects/delete",
    access: { table: { ...caller, ...imports, ...indexEntries, prospects: ["GetItem", "PutItem"] } },
  },
  {
    method: "PUT",
    path: "/api/prospects/{id}/tags",
    file: "prospects/tags",
    access: { table: { ...dictionary, ...imports, ...indexEntries, prospects: ["GetItem", "Query", "PutItem"] } },
  },
];
