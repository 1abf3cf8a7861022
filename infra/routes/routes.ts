/**
 * The route table, which holds method, path, function file and access of each route. The API stack, the OpenAPI generator and the tests
 * read it.
 */
import { exportJob, importJob, named } from "./access.ts";
import { prospectRoutes } from "./prospects.ts";
import { referenceRoutes } from "./reference.ts";
import type { EventFunction, Rate, Route } from "./route.ts";
import { webhookRoutes } from "./webhooks.ts";

/** The throttle of a large answer without authentication. It is low, because a client needs each document only one time. */
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

/** Adds the rights of idempotency, because every POST of the API accepts an idempotency key. */
const withIdempotency = (route: Route): Route => {
  if (route.method !== "POST") return route;
  const idempotency = ["PutItem", "UpdateItem", "DeleteItem"] as const;
  return { ...route, access: { ...route.access, table: { ...route.access.table, idempotency } } };
};

export const routes: readonly Route[] = declared.map(withIdempotency);

/** The authorizer function. API Gateway calls it with the Authorization header of each request that needs a caller. */
export const authorizer = {
  file: "authorize",
  // The function fetches at most two documents from the issuer, and each fetch takes at most three seconds.
  timeoutSeconds: 10,
  access: {
    // The row of the token's subject holds the user's rights, but for older users only the user's own row holds them. The first sign-in
    // accepts the invitation, which writes the user's row and the claim on the e-mail address.
    table: { identity: ["GetItem", "UpdateItem"], reference: ["GetItem", "UpdateItem"], email: ["UpdateItem"] },
    issuer: "verify",
  },
} as const satisfies EventFunction;

/** The function that answers 405 to a method which the path does not have. */
export const methodNotAllowed = {
  file: "method-not-allowed",
  timeoutSeconds: 5,
  access: {},
} as const satisfies EventFunction;

export const eventFunctions = {
  /** Reads the table's stream, writes a delivery for each matching registration, and sends the delivery to the queue. */
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
  /**
   * Reads the table's stream and writes unflushed entries of company indexes into segments. The timeout is long because a large merge
   * takes minutes.
   */
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
  /**
   * Sends the requests of up to ten deliveries concurrently. The timeout includes 10 s for the requests and the time to claim and record
   * the deliveries.
   */
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
  /** Imports an uploaded file, and removes the rows of failed imports. The timeout is the longest that Lambda allows. */
  importJob: { file: "jobs/import", timeoutSeconds: 900, access: importJob },
  /** Writes the file of an export. The timeout is the longest that Lambda allows. */
  exportJob: { file: "jobs/export", timeoutSeconds: 900, access: exportJob },
} as const satisfies Record<string, EventFunction>;

/** The files of the functions that may use KMS. */
export const keyServiceUsers: ReadonlySet<string> = new Set(
  [...routes, ...Object.values<EventFunction>(eventFunctions)]
    .filter(({ access }) => access.secrets !== undefined)
    .map(({ file }) => file),
);
