/** Lists the routes of prospects with their notes and appointments, of imports and exports, and of addresses. */
import {
  currentDictionary,
  dictionary,
  imports,
  importWrites,
  indexEntries,
  indexReads,
  indexRows,
  newIds,
} from "./access.ts";
import type { Rate, Route, TableAccess } from "./route.ts";

/**
 * The throttle of costly routes. A request to such a route keeps its function busy for seconds, or starts work that continues after the
 * response, such as an import, an export, a bulk job or a replay of webhook deliveries.
 */
export const LONG_WORK: Rate = { perSecond: 20, burst: 100 };
/** The throttle of map pins. The response can contain the pins of all prospects of a company, so it can be several megabytes large. */
const MAP: Rate = { perSecond: 200, burst: 400 };

const prospectWrites: TableAccess = {
  ...currentDictionary,
  ...newIds,
  ...indexEntries,
  prospects: ["GetItem", "BatchGetItem", "PutItem", "Query"],
  addressRanges: ["PutItem"],
  addresses: ["BatchGetItem", "PutItem", "UpdateItem"],
  ...imports,
};

/** The rights to read a note by its id. A function first finds the note's key by the id, and then reads the note. */
const note: TableAccess = { ...currentDictionary, ...imports, places: ["BatchGetItem"], prospects: ["BatchGetItem"] };
/** The rights to read an appointment by its id. A function first finds the appointment's key by the id, and then reads the appointment. */
const appointment: TableAccess = { ...currentDictionary, ...imports, places: ["GetItem"], prospects: ["BatchGetItem"] };

export const prospectRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/prospects",
    file: "prospects/list",
    access: { table: { ...indexReads, prospects: ["BatchGetItem", "Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/prospects/search",
    file: "prospects/search",
    access: { table: { ...indexReads, prospects: ["BatchGetItem", "Query"] } },
    streamed: true,
    isRead: true,
  },
  {
    method: "GET",
    path: "/api/prospects/clusters",
    file: "prospects/clusters",
    access: { table: indexReads },
    streamed: true,
  },
  {
    method: "GET",
    path: "/api/prospects/tiles/{z}/{x}/{y}",
    file: "prospects/tile",
    access: { table: indexReads },
    streamed: true,
  },
  {
    method: "GET",
    path: "/api/prospects/pins",
    file: "prospects/pins",
    access: { table: indexReads },
    streamed: true,
    rate: MAP,
  },
  {
    method: "GET",
    path: "/api/prospects/export",
    file: "prospects/export",
    access: { table: { ...indexReads, prospects: ["BatchGetItem", "Query"] } },
    streamed: true,
    rate: LONG_WORK,
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
        clientRecords: ["PutItem"],
      },
    },
  },
  {
    method: "POST",
    path: "/api/prospects/import",
    file: "prospects/import",
    access: { table: importWrites, files: { imports: ["PutObject"] } },
    rate: LONG_WORK,
  },
  {
    method: "GET",
    path: "/api/prospects/import/template.csv",
    file: "prospects/template",
    // The route reads nothing from the table. It declares `table` only to get the variable TABLE_NAME, which the handler of every streamed
    // response needs.
    access: { table: {} },
    streamed: true,
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
      // The client uploads the file with a presigned URL. S3 checks the rights of the function that signed this URL. So the function needs
      // the right to upload.
      files: { uploads: ["PutObject"] },
    },
    rate: LONG_WORK,
  },
  {
    method: "GET",
    path: "/api/prospects/imports/{id}",
    file: "imports/get",
    access: {
      table: { ...imports, importList: ["GetItem"] },
      files: { imports: ["GetObject"], uploads: ["PutObject"] },
    },
  },
  {
    method: "POST",
    path: "/api/prospects/imports/{id}/cancel",
    file: "imports/cancel",
    access: { table: { imports: ["GetItem", "UpdateItem"], importList: ["GetItem"] } },
  },
  {
    method: "POST",
    path: "/api/prospects/exports",
    file: "exports/create",
    access: { table: { ...newIds, exports: ["PutItem"] }, exportQueue: "send" },
    rate: LONG_WORK,
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
    access: { table: { ...currentDictionary, ...imports, prospects: ["GetItem", "Query"] } },
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
        ...currentDictionary,
        ...imports,
        ...indexEntries,
        prospects: ["GetItem", "BatchGetItem", "Query", "PutItem"],
      },
    },
  },

  {
    method: "GET",
    path: "/api/addresses",
    file: "addresses/list",
    access: {
      table: { ...indexRows, addressRanges: ["Query"], addresses: ["Query"], prospects: ["BatchGetItem"] },
    },
    // The response can have 500 addresses. With the longest fields, these exceed the 6 MB of a response that is not streamed.
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
    path: "/api/prospects/{id}/notes",
    file: "notes/list",
    access: { table: { ...currentDictionary, ...imports, prospects: ["GetItem", "Query"] } },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/prospects/{id}/notes",
    file: "notes/create",
    access: {
      table: {
        ...currentDictionary,
        ...imports,
        ...newIds,
        ...indexEntries,
        prospects: ["BatchGetItem", "UpdateItem", "PutItem"],
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
        ...currentDictionary,
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
        prospects: ["GetItem", "BatchGetItem", "Query"],
        webhooks: ["Query"],
      },
    },
  },
  {
    method: "POST",
    path: "/api/prospects/{id}/actions/{registrationId}",
    file: "actions/trigger",
    operationId: "actionsPress",
    access: {
      table: {
        ...dictionary,
        ...imports,
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
    access: { table: { ...currentDictionary, calendar: ["Query"], agendas: ["Query"], prospects: ["BatchGetItem"] } },
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
