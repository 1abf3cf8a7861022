/** THE route table: method, path, function file and access; read by the API stack, the OpenAPI generator and the tests. */
import { type Access, caller, dictionary, indexEntries, newIds, type TableAccess } from "./access.ts";
import { attachedRoutes } from "./routes-attached.ts";
import { placeRoutes } from "./routes-places.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  /** Resource path with `{id}` placeholders. */
  readonly path: string;
  /** File below `functions/` without its ending; also the function's name. */
  readonly file: string;
  readonly access: Access;
  /** The answer may pass the 6 MB of a buffered one: the function is made by `streamEndpoint()` or `streamItems()`. */
  readonly streamed?: true;
}

/** A function that no route leads to. The queue's and stream's own rights come with their event source. */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** Seconds. The delivery queue's visibility time-out is derived from it. */
  readonly timeoutSeconds: number;
}

const prospectWrites: TableAccess = {
  ...dictionary,
  ...newIds,
  ...indexEntries,
  prospects: ["PutItem", "Query"],
  addressRanges: ["PutItem"],
  addresses: ["GetItem", "PutItem", "UpdateItem"],
};
/** Of rows with a display value, whose claim moves with it. */
const valueWrites: TableAccess = { ...caller, reference: ["GetItem", "PutItem", "DeleteItem"] };
const userWrites: TableAccess = { ...caller, reference: ["GetItem", "PutItem", "ConditionCheckItem"] };
/** All prospects of the company. */
const companyReads: TableAccess = { ...dictionary, prospectRanges: ["Query"], prospects: ["Query"] };
const registrationPath = "/api/webhooks/{id}/registrations";

const declared: readonly Route[] = [
  { method: "GET", path: "/openapi.json", file: "docs/openapi", access: { settings: ["WEBHOOK_URL_POLICY"] } },
  { method: "GET", path: "/docs", file: "docs/page", access: {} },

  { method: "GET", path: "/api/me", file: "me", access: { table: caller } },
  { method: "GET", path: "/api/users", file: "users/list", access: { table: dictionary }, streamed: true },
  {
    method: "POST",
    path: "/api/users",
    file: "users/create",
    access: {
      table: {
        ...newIds,
        identity: ["GetItem", "PutItem"],
        email: ["GetItem", "PutItem"],
        reference: ["GetItem", "PutItem", "ConditionCheckItem"],
      },
      identityProvider: "invite",
    },
  },
  { method: "GET", path: "/api/users/{id}", file: "users/get", access: { table: caller } },
  { method: "PATCH", path: "/api/users/{id}", file: "users/update", access: { table: userWrites } },
  { method: "DELETE", path: "/api/users/{id}", file: "users/delete", access: { table: userWrites } },

  { method: "GET", path: "/api/statuses", file: "statuses/list", access: { table: dictionary } },
  {
    method: "POST",
    path: "/api/statuses",
    file: "statuses/create",
    access: { table: { ...newIds, ...caller, reference: ["GetItem", "Query", "PutItem"] } },
  },
  { method: "GET", path: "/api/statuses/{id}", file: "statuses/get", access: { table: caller } },
  { method: "PATCH", path: "/api/statuses/{id}", file: "statuses/update", access: { table: valueWrites } },
  { method: "DELETE", path: "/api/statuses/{id}", file: "statuses/delete", access: { table: valueWrites } },

  { method: "GET", path: "/api/tags", file: "tags/list", access: { table: dictionary } },
  {
    method: "POST",
    path: "/api/tags",
    file: "tags/create",
    access: { table: { ...newIds, ...caller, reference: ["GetItem", "Query", "PutItem"] } },
  },
  { method: "GET", path: "/api/tags/{id}", file: "tags/get", access: { table: caller } },
  { method: "PATCH", path: "/api/tags/{id}", file: "tags/update", access: { table: valueWrites } },
  {
    method: "DELETE",
    path: "/api/tags/{id}",
    file: "tags/delete",
    access: { table: { ...caller, reference: ["GetItem", "DeleteItem"] } },
  },

  {
    method: "GET",
    path: "/api/prospects",
    file: "prospects/list",
    access: { table: companyReads },
    streamed: true,
  },
  {
    method: "GET",
    path: "/api/prospects/pins",
    file: "prospects/pins",
    access: { table: companyReads },
    streamed: true,
  },
  {
    method: "POST",
    path: "/api/prospects",
    file: "prospects/create",
    access: { table: { ...prospectWrites, prospects: ["PutItem"], prospectRanges: ["PutItem"] } },
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
    access: { table: { ...dictionary, ...indexEntries, prospects: ["Query", "PutItem"] } },
  },

  ...placeRoutes,

  ...attachedRoutes,

  {
    method: "GET",
    path: "/api/webhooks",
    file: "webhooks/list",
    access: { table: { ...caller, webhooks: ["Query"] } },
  },
  {
    method: "POST",
    path: "/api/webhooks",
    file: "webhooks/create",
    access: {
      table: { ...caller, ...newIds, webhooks: ["PutItem", "UpdateItem"] },
      settings: ["WEBHOOK_URL_POLICY"],
    },
  },
  {
    method: "GET",
    path: "/api/webhooks/{id}",
    file: "webhooks/get",
    access: { table: { ...caller, webhooks: ["Query"] } },
  },
  {
    method: "DELETE",
    path: "/api/webhooks/{id}",
    file: "webhooks/delete",
    access: { table: { ...caller, webhooks: ["Query", "UpdateItem", "DeleteItem"] } },
  },
  {
    method: "GET",
    path: registrationPath,
    file: "registrations/list",
    access: { table: { ...caller, webhooks: ["Query"] } },
  },
  {
    method: "POST",
    path: registrationPath,
    file: "registrations/create",
    access: { table: { ...caller, ...newIds, webhooks: ["PutItem", "UpdateItem"] } },
  },
  {
    method: "DELETE",
    path: `${registrationPath}/{registrationId}`,
    file: "registrations/delete",
    access: { table: { ...caller, webhooks: ["UpdateItem", "DeleteItem"] } },
  },
];

/** Every POST of the API takes an idempotency key. */
const withIdempotency = (route: Route): Route => {
  if (route.method !== "POST") return route;
  const idempotency = ["PutItem", "UpdateItem", "DeleteItem"] as const;
  return { ...route, access: { ...route.access, table: { ...route.access.table, idempotency } } };
};

export const routes: readonly Route[] = declared.map(withIdempotency);

export const eventFunctions = {
  /** Reads the table's stream, writes a delivery per matching registration, queues it. */
  publish: {
    file: "events/publish",
    timeoutSeconds: 60,
    access: {
      table: { reference: ["Query"], prospects: ["Query"], webhooks: ["Query"], deliveries: ["PutItem"] },
      deliveryQueue: "send",
      parkedRecords: "send",
      settings: ["TIME_SCALE"],
    },
  },
  /** Reads the table's stream and turns unflushed entries of company indexes into segments; a large merge takes minutes. */
  flush: {
    file: "index/flush",
    timeoutSeconds: 300,
    access: {
      table: {
        index: ["Query", "UpdateItem", "BatchWriteItem"],
        manifests: ["GetItem", "BatchWriteItem"],
        segments: ["BatchGetItem", "BatchWriteItem"],
      },
    },
  },
  /** Takes one message of the queue and posts the delivery: 10 s for the exchange, the rest for claim and record. */
  deliver: {
    file: "events/deliver",
    timeoutSeconds: 15,
    access: {
      table: { webhooks: ["GetItem"], deliveries: ["GetItem", "PutItem", "UpdateItem"] },
      deliveryQueue: "send",
      settings: ["TIME_SCALE", "WEBHOOK_URL_POLICY"],
    },
  },
  /** Finds deliveries that are due and have no message. */
  sweep: {
    file: "events/sweep",
    timeoutSeconds: 50,
    access: {
      table: { due: ["Query"], deliveries: ["UpdateItem"] },
      deliveryQueue: "send",
      settings: ["TIME_SCALE"],
    },
  },
} as const satisfies Record<string, EventFunction>;
