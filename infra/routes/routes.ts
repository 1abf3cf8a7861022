/** THE route table: method, path, function file and access. The API stack, the OpenAPI generator and the tests read it. */
import { exportJob, importJob, named } from "./access.ts";
import { prospectRoutes } from "./prospects.ts";
import { referenceRoutes } from "./reference.ts";
import type { EventFunction, Rate, Route } from "./route.ts";
import { webhookRoutes } from "./webhooks.ts";

/** A large answer without authentication. A reader needs each document once. */
const PUBLIC_DOCUMENT: Rate = { perSecond: 5, burst: 20 };

const declared: readonly Route[] = [
  {
    method: "GET",
    path: "/openapi.json",
    file: "docs/openapi",
    access: { settings: ["WEBHOOK_URL_POLICY"] },
    public: true,
    rate: PUBLIC_DOCUMENT,
  },
  { method: "GET", path: "/docs", file: "docs/page", access: {}, public: true, rate: PUBLIC_DOCUMENT },
  { method: "GET", path: "/api/me", file: "me", access: { table: named } },
  ...referenceRoutes,
  ...prospectRoutes,
  ...webhookRoutes,
];

/** Every POST of the API takes an idempotency key. */
const withIdempotency = (route: Route): Route => {
  if (route.method !== "POST") return route;
  const idempotency = ["PutItem", "UpdateItem", "DeleteItem"] as const;
  return { ...route, access: { ...route.access, table: { ...route.access.table, idempotency } } };
};

export const routes: readonly Route[] = declared.map(withIdempotency);

/** API Gateway calls it with the Authorization header of each request that needs a caller. */
export const authorizer = {
  file: "authorize",
  // It fetches at most twice from the issuer, each time for at most three seconds.
  timeoutSeconds: 10,
  access: {
    // The row of the token's subject holds the user's rights; for older users, only the user's own row does. The first sign-in
    // accepts the invitation in the user's row and in the claim on the address.
    table: { identity: ["GetItem", "UpdateItem"], reference: ["GetItem", "UpdateItem"], email: ["UpdateItem"] },
    issuer: "verify",
  },
} as const satisfies EventFunction;

/** Answers 405 to a method that the path does not have. */
export const methodNotAllowed = {
  file: "method-not-allowed",
  timeoutSeconds: 5,
  access: {},
} as const satisfies EventFunction;

export const eventFunctions = {
  /** Reads the table's stream, writes a delivery for each matching registration and queues it. */
  publish: {
    file: "events/publish",
    timeoutSeconds: 60,
    access: {
      table: {
        reference: ["Query"],
        prospects: ["GetItem", "BatchGetItem", "Query"],
        agendas: ["GetItem"],
        webhooks: ["GetItem", "Query"],
        deliveries: ["GetItem", "BatchGetItem", "PutItem", "UpdateItem", "PartiQLInsert"],
      },
      deliveryQueue: "send",
      parkedRecords: "send",
      settings: ["TIME_SCALE"],
    },
  },
  /** Reads the table's stream and writes unflushed entries of company indexes into segments. A large merge takes minutes. */
  flush: {
    file: "index/flush",
    timeoutSeconds: 300,
    access: {
      table: {
        index: ["Query", "UpdateItem", "BatchWriteItem"],
        indexTexts: ["BatchGetItem", "BatchWriteItem"],
        manifests: ["BatchGetItem", "Query", "BatchWriteItem"],
        segments: ["BatchGetItem", "BatchWriteItem"],
      },
    },
  },
  /** Posts the deliveries of up to ten messages at once: 10 s for the requests, the rest to claim and record them. */
  deliver: {
    file: "events/deliver",
    timeoutSeconds: 15,
    access: {
      table: {
        webhooks: ["GetItem", "BatchGetItem", "Query", "UpdateItem"],
        deliveries: [
          "GetItem",
          "BatchGetItem",
          "Query",
          "PutItem",
          "UpdateItem",
          "DeleteItem",
          "BatchWriteItem",
          "PartiQLInsert",
        ],
        dataKeys: ["GetItem"],
        due: ["Query"],
      },
      secrets: "sign",
      deliveryQueue: "send",
      settings: ["TIME_SCALE", "WEBHOOK_URL_POLICY", "DELIVERY_SENDERS"],
    },
  },
  /** Finds due deliveries that have no message, and imports and exports whose lease has expired. */
  sweep: {
    file: "events/sweep",
    timeoutSeconds: 50,
    access: {
      table: { due: ["Query"], deliveries: ["UpdateItem"], imports: ["UpdateItem"], exports: ["UpdateItem"] },
      deliveryQueue: "send",
      importQueue: "send",
      exportQueue: "send",
      settings: ["TIME_SCALE"],
    },
  },
  /** Imports an uploaded file, and removes the rows of failed imports. It may take the longest time that Lambda allows. */
  importJob: { file: "jobs/import", timeoutSeconds: 900, access: importJob },
  /** Writes the file of an export, within the same time. */
  exportJob: { file: "jobs/export", timeoutSeconds: 900, access: exportJob },
} as const satisfies Record<string, EventFunction>;

/** Files of the functions that may use KMS. */
export const keyServiceUsers: ReadonlySet<string> = new Set(
  [...routes, ...Object.values<EventFunction>(eventFunctions)]
    .filter(({ access }) => access.secrets !== undefined)
    .map(({ file }) => file),
);
