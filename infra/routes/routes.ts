/** THE route table: method, path, function file and access; read by the API stack, the OpenAPI generator and the tests. */
import { named } from "./access.ts";
import { exportJob, importJob } from "./access-jobs.ts";
import { attachedRoutes } from "./attached.ts";
import { placeRoutes } from "./places.ts";
import { prospectRoutes } from "./prospects.ts";
import { referenceRoutes } from "./reference.ts";
import type { EventFunction, Route } from "./route.ts";
import { webhookRoutes } from "./webhooks.ts";

const declared: readonly Route[] = [
  {
    method: "GET",
    path: "/openapi.json",
    file: "docs/openapi",
    access: { settings: ["WEBHOOK_URL_POLICY"] },
    public: true,
  },
  { method: "GET", path: "/docs", file: "docs/page", access: {}, public: true },

  { method: "GET", path: "/api/me", file: "me", access: { table: named } },

  ...referenceRoutes,

  ...prospectRoutes,

  ...placeRoutes,

  ...attachedRoutes,

  ...webhookRoutes,
];

/** Every POST of the API takes an idempotency key. */
const withIdempotency = (route: Route): Route => {
  if (route.method !== "POST") return route;
  const idempotency = ["PutItem", "UpdateItem", "DeleteItem"] as const;
  return { ...route, access: { ...route.access, table: { ...route.access.table, idempotency } } };
};

export const routes: readonly Route[] = declared.map(withIdempotency);

/** Called by the gateway with the Authorization header of each route that needs a caller. */
export const authorizer = {
  file: "authorize",
  // Two fetches from the issuer take three seconds each at most.
  timeoutSeconds: 10,
  access: {
    // Rights stand beside the subject's place; those of users of before stand in the user's own row alone. The first sign-in accepts
    // the invitation, at the user and at the claim on the address.
    table: { identity: ["GetItem", "UpdateItem"], reference: ["GetItem", "UpdateItem"], email: ["UpdateItem"] },
    issuer: "verify",
  },
} as const satisfies EventFunction;

/** Answers what a path has no method for. */
export const methodNotAllowed = {
  file: "method-not-allowed",
  timeoutSeconds: 5,
  access: {},
} as const satisfies EventFunction;

export const eventFunctions = {
  /** Reads the table's stream, writes a delivery per matching registration, queues it. */
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
  /** Reads the table's stream and turns unflushed entries of company indexes into segments; a large merge takes minutes. */
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
  /** Takes messages of the queue and posts their deliveries at the same time: 10 s for the exchanges, the rest for claim and record. */
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
  /** Finds deliveries that are due and have no message; and imports and exports that nobody works on. */
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
  /** Imports what was uploaded, and removes what imports that came to nothing have left: for as long as a function may run. */
  importJob: { file: "jobs/import", timeoutSeconds: 900, access: importJob },
  /** Writes the files of exports, for as long. */
  exportJob: { file: "jobs/export", timeoutSeconds: 900, access: exportJob },
} as const satisfies Record<string, EventFunction>;

/** Files of the functions that may use the key service. */
export const keyServiceUsers: ReadonlySet<string> = new Set(
  [...routes, ...Object.values<EventFunction>(eventFunctions)]
    .filter(({ access }) => access.secrets !== undefined)
    .map(({ file }) => file),
);
