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
import { get, LONG_WORK, patch, post, put, type Route, remove, type TableAccess, type Throttle } from "./route.ts";

/** The throttle of map pins. The response can contain the pins of all prospects of a company, so it can be several megabytes large. */
const MAP: Throttle = { perSecond: 200, burst: 400 };

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
const appointment: TableAccess = { ...currentDictionary, ...imports, places: ["GetItem"], prospects: ["BatchGetItem"] };

export const prospectRoutes: readonly Route[] = [
  get("/api/prospects", "prospects/list", {
    table: { ...indexReads, prospects: ["BatchGetItem", "Query"] },
    streamed: true,
  }),
  post("/api/prospects/search", "prospects/search", {
    table: { ...indexReads, prospects: ["BatchGetItem", "Query"] },
    streamed: true,
    isRead: true,
  }),
  get("/api/prospects/clusters", "prospects/clusters", { table: indexReads, streamed: true }),
  get("/api/prospects/tiles/{z}/{x}/{y}", "prospects/tile", { table: indexReads, streamed: true }),
  get("/api/prospects/pins", "prospects/pins", { table: indexReads, streamed: true, rate: MAP }),
  get("/api/prospects/export", "prospects/export", {
    table: { ...indexReads, prospects: ["BatchGetItem", "Query"] },
    streamed: true,
    rate: LONG_WORK,
  }),
  post("/api/prospects", "prospects/create", {
    table: {
      ...prospectWrites,
      ...indexRows,
      reference: ["GetItem", "Query", "ConditionCheckItem"],
      index: ["Query", "PutItem"],
      indexTexts: ["BatchGetItem", "Query", "PutItem"],
      prospectRanges: ["PutItem"],
      clientRecords: ["BatchGetItem", "PutItem"],
      matchClaims: ["GetItem", "PutItem"],
      agendas: ["GetItem", "PutItem", "DeleteItem"],
    },
  }),
  post("/api/prospects/import", "prospects/import", {
    table: importWrites,
    files: { imports: ["PutObject"] },
    rate: LONG_WORK,
  }),
  // The route reads nothing from the table. It declares `table` only to get the variable TABLE_NAME, which the handler of every streamed
  // response needs.
  get("/api/prospects/import/template.csv", "prospects/template", { table: {}, streamed: true }),
  get("/api/prospects/imports", "imports/list", { table: { importList: ["Query"], imports: ["BatchGetItem"] } }),
  // The client uploads the file with a presigned URL. S3 checks the rights of the function that signed this URL. So the function needs
  // the right to upload.
  post("/api/prospects/imports", "imports/create", {
    table: { ...newIds, imports: ["PutItem"], openImports: ["Query", "PutItem"], importList: ["PutItem"] },
    files: { uploads: ["PutObject"] },
    rate: LONG_WORK,
  }),
  get("/api/prospects/imports/{id}", "imports/get", {
    table: { ...imports, importList: ["GetItem"] },
    files: { imports: ["GetObject"], uploads: ["PutObject"] },
  }),
  post("/api/prospects/imports/{id}/cancel", "imports/cancel", {
    table: { imports: ["GetItem", "UpdateItem"], importList: ["GetItem"] },
  }),
  post("/api/prospects/exports", "exports/create", {
    table: { ...newIds, exports: ["PutItem"] },
    exportQueue: "send",
    rate: LONG_WORK,
  }),
  get("/api/prospects/exports/{id}", "exports/get", {
    table: { exports: ["GetItem"] },
    files: { exports: ["GetObject"] },
  }),
  get("/api/prospects/{id}", "prospects/get", {
    table: { ...currentDictionary, ...imports, prospects: ["GetItem", "Query"] },
    streamed: true,
  }),
  patch("/api/prospects/{id}", "prospects/update", {
    table: { ...prospectWrites, agendas: ["GetItem", "PutItem", "DeleteItem"] },
  }),
  remove("/api/prospects/{id}", "prospects/delete", {
    table: { ...imports, ...indexEntries, prospects: ["GetItem", "PutItem"], agendas: ["DeleteItem"] },
  }),
  put("/api/prospects/{id}/tags", "prospects/tags", {
    table: {
      ...currentDictionary,
      ...imports,
      ...indexEntries,
      prospects: ["GetItem", "BatchGetItem", "Query", "PutItem"],
    },
  }),

  // The response can have 500 addresses. With the longest fields, these exceed the 6 MB of a response that is not streamed.
  get("/api/addresses", "addresses/list", {
    table: { ...indexRows, addressRanges: ["Query"], addresses: ["Query"], prospects: ["BatchGetItem"] },
    streamed: true,
  }),
  post("/api/addresses", "addresses/create", {
    table: { ...newIds, addressRanges: ["PutItem"], addresses: ["PutItem"] },
  }),
  get("/api/addresses/{id}", "addresses/get", {
    table: { ...imports, addresses: ["BatchGetItem"], prospects: ["BatchGetItem"] },
  }),
  patch("/api/addresses/{id}", "addresses/update", {
    table: {
      ...imports,
      ...indexEntries,
      addresses: ["BatchGetItem", "PutItem", "UpdateItem", "ConditionCheckItem"],
      prospects: ["BatchGetItem", "PutItem"],
    },
  }),

  get("/api/prospects/{id}/notes", "notes/list", {
    table: { ...currentDictionary, ...imports, prospects: ["GetItem", "Query"] },
    streamed: true,
  }),
  post("/api/prospects/{id}/notes", "notes/create", {
    table: {
      ...currentDictionary,
      ...imports,
      ...newIds,
      ...indexEntries,
      prospects: ["BatchGetItem", "UpdateItem", "PutItem"],
      places: ["PutItem"],
    },
  }),
  get("/api/notes/{id}", "notes/get", { table: note }),
  patch("/api/notes/{id}", "notes/update", {
    table: { ...note, ...indexEntries, prospects: ["BatchGetItem", "UpdateItem", "PutItem"] },
  }),
  remove("/api/notes/{id}", "notes/delete", {
    table: {
      ...imports,
      ...indexEntries,
      prospects: ["BatchGetItem", "UpdateItem", "DeleteItem"],
      places: ["BatchGetItem", "DeleteItem"],
    },
  }),

  post("/api/prospects/{id}/appointments", "appointments/create", {
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
  }),
  get("/api/prospects/{id}/actions", "actions/list", {
    table: { ...dictionary, ...imports, prospects: ["GetItem", "BatchGetItem", "Query"], webhooks: ["Query"] },
  }),
  post("/api/prospects/{id}/actions/{registrationId}", "actions/trigger", {
    table: {
      ...dictionary,
      ...imports,
      prospects: ["GetItem", "BatchGetItem", "Query"],
      webhooks: ["Query", "ConditionCheckItem"],
      deliveries: ["PutItem"],
    },
    deliveryQueue: "send",
    settings: ["TIME_SCALE"],
    operationId: "actionsPress",
  }),
  get("/api/appointments", "appointments/list", {
    table: { ...currentDictionary, calendar: ["Query"], agendas: ["Query"], prospects: ["BatchGetItem"] },
    streamed: true,
  }),
  get("/api/appointments/{id}", "appointments/get", { table: appointment }),
  patch("/api/appointments/{id}", "appointments/update", {
    table: {
      ...appointment,
      ...indexEntries,
      prospects: ["BatchGetItem", "PutItem"],
      calendar: ["PutItem", "DeleteItem"],
      agendas: ["GetItem", "PutItem", "DeleteItem"],
    },
  }),
  remove("/api/appointments/{id}", "appointments/delete", {
    table: {
      ...imports,
      ...indexEntries,
      prospects: ["BatchGetItem", "PutItem", "DeleteItem"],
      places: ["GetItem", "DeleteItem"],
      calendar: ["DeleteItem"],
      agendas: ["GetItem", "PutItem", "DeleteItem"],
    },
  }),
];
