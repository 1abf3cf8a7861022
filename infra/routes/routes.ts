/** The route table: method, path, function file and rights of each route, for the API stack, the OpenAPI generator and the tests. */
import { bulkJob, currentDictionary, exportJob, importJob, indexRows, named } from "./access.ts";
import { jobRoutes } from "./jobs.ts";
import { prospectRoutes } from "./prospects.ts";
import { referenceRoutes } from "./reference.ts";
import { type EventFunction, get, post, type Route } from "./route.ts";
import { serviceAccountRoutes } from "./service-accounts.ts";
import { sessionRoutes, signedInUser } from "./session.ts";
import { syncRoutes } from "./sync.ts";
import { territoryRoutes } from "./territories.ts";
import { webhookRoutes } from "./webhooks.ts";

const declared: readonly Route[] = [
  get("/openapi.json", "docs/openapi", { settings: ["WEBHOOK_URL_POLICY"], public: true }),
  get("/openapi-3.0.json", "docs/openapi30", { settings: ["WEBHOOK_URL_POLICY"], public: true }),
  get("/docs", "docs/page", { public: true }),
  get("/health", "health", { public: true }),
  post("/health/webhooks", "health-webhooks", { public: true }),
  ...sessionRoutes,
  get("/api/me", "me", { table: named }),
  ...referenceRoutes,
  ...serviceAccountRoutes,
  ...prospectRoutes,
  ...territoryRoutes,
  ...jobRoutes,
  get("/api/reports/activity", "reports/activity", {
    table: { ...indexRows, ...currentDictionary, factLog: ["Query"], dayFacts: ["Query"], territories: ["Query"] },
    streamed: true,
  }),
  ...syncRoutes,
  ...webhookRoutes,
];

/** Adds the rights for idempotency keys to each POST that accepts them: one that needs a token and changes something. */
const withIdempotency = (route: Route): Route => {
  if (route.method !== "POST" || route.public || route.isRead) return route;
  const receipts = route.access.table?.idempotency ?? [];
  const idempotency = ["PutItem", "UpdateItem", "DeleteItem", ...receipts] as const;
  return { ...route, access: { ...route.access, table: { ...route.access.table, idempotency } } };
};

export const routes: readonly Route[] = declared.map(withIdempotency);

/** API Gateway invokes this function with the Authorization header of a request, except for public routes. */
export const authorizer = {
  file: "authorize",
  // Time for two requests to the issuer with at most two attempts of two seconds each, and two seconds for all other work.
  timeoutSeconds: 10,
  access: {
    // The function reads the user's role and permissions from the identity row. It writes only to accept the invitation of a user who signs
    // in for the first time, and to store the time of a key's use.
    table: {
      ...signedInUser,
      keyRings: ["GetItem", "UpdateItem"],
      sessions: ["GetItem"],
      sessionDataKeys: ["GetItem"],
    },
    issuer: "verify",
    sessionTokens: "open",
  },
} as const satisfies EventFunction;

export const methodNotAllowed = {
  file: "method-not-allowed",
  timeoutSeconds: 5,
  access: {},
} as const satisfies EventFunction;

/** The scheduled smoke test. It uses the service only over HTTP, so it has no access to the table. */
export const canary = {
  file: "canary",
  // The test takes some seconds, and waits up to half a minute more for its webhook.
  timeoutSeconds: 90,
  access: {},
} as const satisfies EventFunction;

export const eventFunctions = {
  /** Writes a delivery for each change and each matching webhook registration, and sends a queue message for it. */
  publish: {
    file: "events/publish",
    timeoutSeconds: 60,
    access: {
      table: {
        reference: ["Query"],
        prospects: ["GetItem", "BatchGetItem", "Query"],
        webhooks: ["GetItem", "Query"],
        deliveries: ["GetItem", "BatchGetItem", "PutItem", "UpdateItem", "PartiQLInsert"],
      },
      deliveryQueue: "send",
      poisonRecords: "send",
      settings: ["TIME_SCALE"],
    },
  },
  /** Moves delta entries into the company index. The time-out is long, because merging large parts of an index takes minutes. */
  flush: {
    file: "index/flush",
    timeoutSeconds: 300,
    access: {
      table: {
        index: ["Query", "UpdateItem", "BatchWriteItem"],
        flushRequests: ["PutItem"],
        changeLog: ["PutItem"],
        factLog: ["GetItem", "Query", "PutItem", "BatchWriteItem"],
        dayFacts: ["Query", "PutItem"],
        indexTexts: ["BatchGetItem", "BatchWriteItem"],
        manifests: ["BatchGetItem", "Query", "BatchWriteItem"],
        segments: ["BatchGetItem", "BatchWriteItem"],
      },
    },
  },
  /** Sends deliveries. The time-out is 10 s for the requests to the receivers, and 5 s for reading and recording the deliveries. */
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
  sweep: {
    file: "events/sweep",
    timeoutSeconds: 50,
    access: {
      table: {
        due: ["Query"],
        keyRings: ["GetItem", "UpdateItem"],
        reference: ["Query"],
        quotas: ["UpdateItem"],
        deliveries: ["UpdateItem"],
        flushRequests: ["UpdateItem"],
        imports: ["UpdateItem"],
        exports: ["UpdateItem"],
        bulkJobs: ["UpdateItem"],
      },
      deliveryQueue: "send",
      importQueue: "send",
      exportQueue: "send",
      bulkQueue: "send",
      mail: "send",
      settings: ["TIME_SCALE"],
    },
  },
  /** Imports a file, and deletes the rows of failed imports. The time-out is Lambda's maximum. */
  importJob: { file: "jobs/import", timeoutSeconds: 900, access: importJob },
  /** Exports prospects to a file. The time-out is Lambda's maximum. */
  exportJob: { file: "jobs/export", timeoutSeconds: 900, access: exportJob },
  /** Changes the records of a bulk job. After a minute, a job lets other jobs run, and continues later. */
  bulkJob: { file: "jobs/bulk", timeoutSeconds: 300, access: bulkJob },
} as const satisfies Record<string, EventFunction>;
