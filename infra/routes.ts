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

/** What a function may touch: table actions by key family, and whether it sends to the delivery queue. */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  readonly deliveryQueue?: "send";
}

export interface Route {
  readonly method: Method;
  /** Resource path with `{id}` placeholders. */
  readonly path: string;
  /** File below `functions/` without its ending; also the function's name. */
  readonly file: string;
  readonly access: Access;
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
