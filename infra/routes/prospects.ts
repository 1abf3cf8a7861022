/** The part of the route table that is about prospects themselves. */
import { dictionary, imports, indexEntries, newIds, type TableAccess, upcoming } from "./access.ts";
import { importWrites, indexReads } from "./access-jobs.ts";
import type { Route } from "./route.ts";

const prospectWrites: TableAccess = {
  ...dictionary,
  ...newIds,
  ...indexEntries,
  prospects: ["GetItem", "BatchGetItem", "PutItem", "Query"],
  addressRanges: ["PutItem"],
  addresses: ["BatchGetItem", "PutItem", "UpdateItem"],
  ...imports,
};
export const prospectRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/prospects",
    file: "prospects/list",
    access: { table: { ...indexReads, ...upcoming, prospects: ["BatchGetItem", "Query"] } },
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
    access: { table: { ...indexReads, prospects: ["BatchGetItem", "Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/prospects",
    file: "prospects/create",
    access: {
      table: {
        ...prospectWrites,
        reference: ["Query", "ConditionCheckItem"],
        prospects: ["BatchGetItem", "PutItem"],
        prospectRanges: ["PutItem"],
      },
    },
  },
  {
    method: "POST",
    path: "/api/prospects/import",
    file: "prospects/import",
    access: { table: importWrites, files: { imports: ["PutObject"] } },
  },
  {
    method: "GET",
    path: "/api/prospects/imports",
    file: "imports/list",
    access: { table: { importList: ["Query"], imports: ["BatchGetItem"] } },
  },
  {
    method: "POST",
    path: "/api/prospects/imports",
    file: "imports/create",
    access: {
      table: {
        ...newIds,
        imports: ["PutItem"],
        openImports: ["Query", "PutItem"],
        importList: ["PutItem"],
      },
      // A link does what its maker may do.
      files: { uploads: ["PutObject"] },
    },
  },
  {
    method: "GET",
    path: "/api/prospects/imports/{id}",
    file: "imports/get",
    access: { table: { ...imports }, files: { imports: ["GetObject"], uploads: ["PutObject"] } },
  },
  {
    method: "POST",
    path: "/api/prospects/imports/{id}/cancel",
    file: "imports/cancel",
    access: { table: { imports: ["GetItem", "UpdateItem"] } },
  },
  {
    method: "POST",
    path: "/api/prospects/exports",
    file: "exports/create",
    access: { table: { ...newIds, exports: ["PutItem"] }, exportQueue: "send" },
  },
  {
    method: "GET",
    path: "/api/prospects/exports/{id}",
    file: "exports/get",
    access: { table: { exports: ["GetItem"] }, files: { exports: ["GetObject"] } },
  },
  {
    method: "GET",
    path: "/api/prospects/{id}",
    file: "prospects/get",
    access: { table: { ...dictionary, ...imports, prospects: ["GetItem", "Query"] } },
    streamed: true,
  },
  {
    method: "PATCH",
    path: "/api/prospects/{id}",
    file: "prospects/update",
    access: { table: { ...prospectWrites, agendas: ["GetItem", "PutItem", "DeleteItem"] } },
  },
  {
    method: "DELETE",
    path: "/api/prospects/{id}",
    file: "prospects/delete",
    access: {
      table: { ...imports, ...indexEntries, prospects: ["GetItem", "PutItem"], agendas: ["DeleteItem"] },
    },
  },
  {
    method: "PUT",
    path: "/api/prospects/{id}/tags",
    file: "prospects/tags",
    access: {
      table: {
        ...dictionary,
        ...imports,
        ...indexEntries,
        ...upcoming,
        prospects: ["GetItem", "BatchGetItem", "Query", "PutItem"],
      },
    },
  },
];
