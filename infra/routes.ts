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
 * `deliveryQueue` brings DELIVERY_QUEUE_URL, `settings` the variables of their names.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  readonly deliveryQueue?: "send";
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

/** Every signed-in request: the subject's company and user, then the user's row. */
const caller = { identity: ["GetItem"], reference: ["GetItem"] } as const satisfies Access["table"];
const newIds = { ids: ["UpdateItem"] } as const satisfies Access["table"];

export const routes: readonly Route[] = [
  { method: "GET", path: "/openapi.json", file: "docs/openapi", access: {} },
  { method: "GET", path: "/docs", file: "docs/page", access: {} },

  { method: "GET", path: "/api/me", file: "me", access: { table: caller } },
];
void newIds;

export const eventFunctions = {
  /** Reads the table's stream, writes a delivery per matching registration, queues it. */
  publish: {
    file: "events/publish",
    timeoutSeconds: 60,
    access: {
      table: { reference: ["GetItem", "Query"], webhooks: ["Query"], deliveries: ["GetItem", "PutItem"] },
      deliveryQueue: "send",
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
      table: { due: ["Query"], deliveries: ["GetItem", "UpdateItem"] },
      deliveryQueue: "send",
      settings: ["TIME_SCALE"],
    },
  },
} as const satisfies Record<string, EventFunction>;
