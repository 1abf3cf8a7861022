/** The part of the route table for what hangs on a prospect: notes and appointments. */

import { caller, dictionary, indexEntries, newIds, type TableAccess } from "./access.ts";
import type { Route } from "./routes.ts";

/** A note or appointment by its id alone: its place, then the row with its prospect. */
const attached: TableAccess = { ...dictionary, places: ["GetItem"], prospects: ["BatchGetItem"] };

export const attachedRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/prospects/{id}/notes",
    file: "notes/list",
    access: { table: { ...dictionary, prospects: ["Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/prospects/{id}/notes",
    file: "notes/create",
    access: {
      table: {
        ...dictionary,
        ...newIds,
        ...indexEntries,
        prospects: ["UpdateItem", "PutItem"],
        places: ["PutItem"],
      },
    },
  },
  { method: "GET", path: "/api/notes/{id}", file: "notes/get", access: { table: attached } },
  {
    method: "PATCH",
    path: "/api/notes/{id}",
    file: "notes/update",
    access: { table: { ...attached, ...indexEntries, prospects: ["BatchGetItem", "UpdateItem", "PutItem"] } },
  },
  {
    method: "DELETE",
    path: "/api/notes/{id}",
    file: "notes/delete",
    access: {
      table: {
        ...caller,
        ...indexEntries,
        prospects: ["BatchGetItem", "UpdateItem", "DeleteItem"],
        places: ["GetItem", "DeleteItem"],
      },
    },
  },

  {
    method: "POST",
    path: "/api/prospects/{id}/appointments",
    file: "appointments/create",
    access: {
      table: {
        ...dictionary,
        ...newIds,
        ...indexEntries,
        prospects: ["GetItem", "Query", "PutItem"],
        places: ["PutItem"],
        calendar: ["PutItem"],
      },
    },
  },
  {
    method: "GET",
    path: "/api/appointments",
    file: "appointments/list",
    access: { table: { ...dictionary, calendar: ["Query"], prospects: ["BatchGetItem"] } },
    streamed: true,
  },
  { method: "GET", path: "/api/appointments/{id}", file: "appointments/get", access: { table: attached } },
  {
    method: "PATCH",
    path: "/api/appointments/{id}",
    file: "appointments/update",
    access: {
      table: {
        ...attached,
        ...indexEntries,
        prospects: ["BatchGetItem", "Query", "PutItem"],
        calendar: ["PutItem", "DeleteItem"],
      },
    },
  },
  {
    method: "DELETE",
    path: "/api/appointments/{id}",
    file: "appointments/delete",
    access: {
      table: {
        ...caller,
        ...indexEntries,
        prospects: ["BatchGetItem", "Query", "PutItem"],
        places: ["GetItem", "DeleteItem"],
        calendar: ["DeleteItem"],
      },
    },
  },
];
