/** The part of the route table for what hangs on a prospect: notes, appointments and buttons. */

import { dictionary, imports, indexEntries, newIds, type TableAccess, upcoming } from "./access.ts";
import type { Route } from "./route.ts";

/** A note by its id alone: its place, then the row with its prospect. */
const note: TableAccess = { ...dictionary, ...imports, places: ["BatchGetItem"], prospects: ["BatchGetItem"] };
/** An appointment likewise; an import makes none, so that none has a place among others. */
const appointment: TableAccess = { ...dictionary, ...imports, places: ["GetItem"], prospects: ["BatchGetItem"] };

export const attachedRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/prospects/{id}/notes",
    file: "notes/list",
    access: { table: { ...dictionary, ...imports, prospects: ["GetItem", "Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/prospects/{id}/notes",
    file: "notes/create",
    access: {
      table: {
        ...dictionary,
        ...imports,
        ...newIds,
        ...indexEntries,
        prospects: ["UpdateItem", "PutItem"],
        places: ["PutItem"],
      },
    },
  },
  { method: "GET", path: "/api/notes/{id}", file: "notes/get", access: { table: note } },
  {
    method: "PATCH",
    path: "/api/notes/{id}",
    file: "notes/update",
    access: { table: { ...note, ...indexEntries, prospects: ["BatchGetItem", "UpdateItem", "PutItem"] } },
  },
  {
    method: "DELETE",
    path: "/api/notes/{id}",
    file: "notes/delete",
    access: {
      table: {
        ...imports,
        ...indexEntries,
        prospects: ["BatchGetItem", "UpdateItem", "DeleteItem"],
        places: ["BatchGetItem", "DeleteItem"],
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
        ...imports,
        ...newIds,
        ...indexEntries,
        prospects: ["GetItem", "BatchGetItem", "PutItem"],
        places: ["PutItem"],
        calendar: ["PutItem"],
        agendas: ["GetItem", "PutItem", "DeleteItem"],
      },
    },
  },
  {
    method: "GET",
    path: "/api/prospects/{id}/actions",
    file: "actions/list",
    access: {
      table: {
        ...dictionary,
        ...imports,
        ...upcoming,
        prospects: ["GetItem", "BatchGetItem", "Query"],
        webhooks: ["Query"],
      },
    },
  },
  {
    method: "POST",
    path: "/api/prospects/{id}/actions/{registrationId}",
    file: "actions/press",
    access: {
      table: {
        ...dictionary,
        ...imports,
        ...upcoming,
        prospects: ["GetItem", "BatchGetItem", "Query"],
        webhooks: ["Query", "ConditionCheckItem"],
        deliveries: ["PutItem"],
      },
      deliveryQueue: "send",
      settings: ["TIME_SCALE"],
    },
  },
  {
    method: "GET",
    path: "/api/appointments",
    file: "appointments/list",
    access: { table: { ...dictionary, calendar: ["Query"], agendas: ["Query"], prospects: ["BatchGetItem"] } },
    streamed: true,
  },
  { method: "GET", path: "/api/appointments/{id}", file: "appointments/get", access: { table: appointment } },
  {
    method: "PATCH",
    path: "/api/appointments/{id}",
    file: "appointments/update",
    access: {
      table: {
        ...appointment,
        ...indexEntries,
        prospects: ["BatchGetItem", "PutItem"],
        calendar: ["PutItem", "DeleteItem"],
        agendas: ["GetItem", "PutItem", "DeleteItem"],
      },
    },
  },
  {
    method: "DELETE",
    path: "/api/appointments/{id}",
    file: "appointments/delete",
    access: {
      table: {
        ...imports,
        ...indexEntries,
        prospects: ["BatchGetItem", "PutItem", "DeleteItem"],
        places: ["GetItem", "DeleteItem"],
        calendar: ["DeleteItem"],
        agendas: ["GetItem", "PutItem", "DeleteItem"],
      },
    },
  },
];
