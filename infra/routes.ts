/** THE route table: method, path, function file and access; read by the API stack, the OpenAPI generator and the tests. */
import type { Family } from "#shared/db/keys.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** DynamoDB actions as IAM names them. A transaction needs the actions of its parts. */
export type TableAction =
  | "GetItem"
  | "BatchGetItem"
  | "Query"
  | "PutItem"
  | "UpdateItem"
  | "DeleteItem"
  | "BatchWriteItem"
  | "ConditionCheckItem";

/** Settings of the deployment that a function reads from its environment. */
export type Setting = "WEBHOOK_URL_POLICY" | "TIME_SCALE";

/**
 * What a function may touch. Each entry is the right and the environment variable that goes with it: `table` brings
 * TABLE_NAME, its family `identity` also ISSUER and AUDIENCE (who looks a subject up has verified its token),
 * `identityProvider` brings USER_POOL_ID where the deployment has a user pool, `deliveryQueue` brings DELIVERY_QUEUE_URL, `parkedRecords` PARKED_RECORDS_URL, `settings` the variables of their names.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  readonly identityProvider?: "invite";
  readonly deliveryQueue?: "send";
  readonly parkedRecords?: "send";
  readonly settings?: readonly Setting[];
}

export interface Route {
  readonly method: Method;
  /** Resource path with `{id}` placeholders. */
  readonly path: string;
  /** File below `functions/` without its ending; also the function's name. */
  readonly file: string;
  readonly access: Access;
}

/** A function that no route leads to. The queue's and stream's own rights come with their event source. */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** Seconds. The delivery queue's visibility time-out is derived from it. */
  readonly timeoutSeconds: number;
}

type TableAccess = NonNullable<Access["table"]>;

/** What every signed-in request needs: the subject's company and user, then the user's row. */
const caller: TableAccess = { identity: ["GetItem"], reference: ["GetItem"] };
/** And with the names of the company's statuses, tags and users. */
const dictionary: TableAccess = { ...caller, reference: ["GetItem", "Query"] };
const newIds: TableAccess = { ids: ["UpdateItem"] };

const prospectWrites: TableAccess = {
  ...dictionary,
  ...newIds,
  prospects: ["PutItem", "Query"],
  addressRanges: ["PutItem"],
  addresses: ["GetItem", "PutItem", "UpdateItem"],
};
/** Of rows with a display value, whose claim moves with it. */
const valueWrites: TableAccess = { ...caller, reference: ["GetItem", "PutItem", "DeleteItem"] };
const userWrites: TableAccess = { ...caller, reference: ["GetItem", "PutItem", "ConditionCheckItem"] };
const registrationPath = "/api/webhooks/{id}/registrations";

export const routes: readonly Route[] = [
  { method: "GET", path: "/openapi.json", file: "docs/openapi", access: { settings: ["WEBHOOK_URL_POLICY"] } },
  { method: "GET", path: "/docs", file: "docs/page", access: {} },

  { method: "GET", path: "/api/me", file: "me", access: { table: caller } },
  { method: "GET", path: "/api/users", file: "users/list", access: { table: dictionary } },
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
    access: { table: { ...dictionary, prospectRanges: ["Query"], prospects: ["Query"] } },
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
  },
  { method: "PATCH", path: "/api/prospects/{id}", file: "prospects/update", access: { table: prospectWrites } },
  {
    method: "DELETE",
    path: "/api/prospects/{id}",
    file: "prospects/delete",
    access: { table: { ...caller, prospects: ["UpdateItem"] } },
  },
  {
    method: "PUT",
    path: "/api/prospects/{id}/tags",
    file: "prospects/tags",
    access: { table: { ...dictionary, prospects: ["Query", "PutItem"] } },
  },

  {
    method: "GET",
    path: "/api/addresses",
    file: "addresses/list",
    access: { table: { ...caller, addressRanges: ["Query"], addresses: ["Query"] } },
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
    access: { table: { ...caller, addresses: ["GetItem"] } },
  },
  {
    method: "PATCH",
    path: "/api/addresses/{id}",
    file: "addresses/update",
    access: {
      table: {
        ...caller,
        addresses: ["GetItem", "UpdateItem", "ConditionCheckItem"],
        prospects: ["BatchGetItem", "UpdateItem"],
      },
    },
  },

  {
    method: "GET",
    path: "/api/territories",
    file: "territories/list",
    access: { table: { ...caller, territories: ["Query"] } },
  },
  {
    method: "POST",
    path: "/api/territories",
    file: "territories/create",
    access: { table: { ...caller, ...newIds, territories: ["PutItem"] } },
  },
  {
    method: "GET",
    path: "/api/territories/{id}",
    file: "territories/get",
    access: { table: { ...caller, territories: ["GetItem"] } },
  },
  {
    method: "PATCH",
    path: "/api/territories/{id}",
    file: "territories/update",
    access: { table: { ...caller, territories: ["GetItem", "PutItem"] } },
  },
  {
    method: "DELETE",
    path: "/api/territories/{id}",
    file: "territories/delete",
    access: { table: { ...caller, territories: ["UpdateItem"] } },
  },

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

export const eventFunctions = {
  /** Reads the table's stream, writes a delivery per matching registration, queues it. */
  publish: {
    file: "events/publish",
    timeoutSeconds: 60,
    access: {
      table: { reference: ["Query"], webhooks: ["Query"], deliveries: ["PutItem"] },
      deliveryQueue: "send",
      parkedRecords: "send",
      settings: ["TIME_SCALE"],
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
