/** The types of the route table, and the rights of functions. */
import type { Family } from "#shared/db/keys.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route extends Marks {
  readonly method: Method;
  readonly path: string;
  /** The path of the function's file below `functions/`, without its extension. infra/settings/capacity.ts names functions by this path. */
  readonly file: string;
  readonly access: Access;
}

interface Marks {
  /** The old operation id of a function whose file was renamed: code generators name methods after it. By default, it comes from `file`. */
  readonly operationId?: string | undefined;
  /** The response may exceed 6 MB, the limit without streaming. `shared/http/streaming.ts` creates the handler. */
  readonly streamed?: true | undefined;
  readonly public?: true | undefined;
  /** True for a POST that changes nothing. It accepts no idempotency key, so its function needs no rights to the rows of these keys. */
  readonly isRead?: true | undefined;
  /**
   * The throttle of the route for all callers together, so that a costly route cannot use the capacity of the whole API. A public route has
   * `WITHOUT_TOKEN`.
   */
  readonly rate?: Throttle | undefined;
}

const routeOf =
  (method: Method) =>
  (
    path: string,
    file: string,
    { operationId, streamed, public: open, isRead, rate, ...access }: Access & Marks,
  ): Route => ({
    ...{ method, path, file, access },
    ...{ operationId, streamed, public: open, isRead, rate },
  });

export const get = routeOf("GET");
export const post = routeOf("POST");
export const put = routeOf("PUT");
export const patch = routeOf("PATCH");
export const remove = routeOf("DELETE");

export interface Throttle {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * The throttle of each method of a public route, each method that a path does not support, and each preflight. At this rate, a method keeps
 * about one execution busy.
 */
export const WITHOUT_TOKEN: Throttle = { perSecond: 200, burst: 400 };

/** The throttle of a route that keeps its function busy for seconds, or starts work that continues after the response. */
export const LONG_WORK: Throttle = { perSecond: 20, burst: 100 };

/** A function without a route. `infra/stack/workers.ts` adds the right to read the queue or stream that invokes it. */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** The time-out of the function. The visibility timeout of its queue is computed from it. */
  readonly timeoutSeconds: number;
}

/** IAM has no action for a transaction, which needs the actions of its writes and checks. A batch of PartiQL statements needs PartiQL's. */
type TableAction =
  | "GetItem"
  | "BatchGetItem"
  | "Query"
  | "PutItem"
  | "UpdateItem"
  | "DeleteItem"
  | "BatchWriteItem"
  | "ConditionCheckItem"
  | "PartiQLInsert";

export type Setting = "WEBHOOK_URL_POLICY" | "TIME_SCALE" | "DELIVERY_SENDERS" | "CHANGES_AT_ONCE";

export const folderNames = ["uploads", "imports", "exports", "bulk"] as const;
export type Folder = (typeof folderNames)[number];
/** `PutObject` includes multipart uploads. */
type FileAction = "PutObject" | "GetObject" | "DeleteObject" | "AbortMultipartUpload";

/**
 * The rights of a function. Each right also sets environment variables:
 * - `table` sets TABLE_NAME.
 * - `deliveryQueue` sets DELIVERY_QUEUE_URL, `poisonRecords` POISON_RECORDS_URL, `importQueue` IMPORT_QUEUE_URL, `exportQueue`
 *   EXPORT_QUEUE_URL, and `bulkQueue` BULK_QUEUE_URL.
 * - `files` sets BUCKET_NAME.
 * - `secrets`, `sessionTokens` and `cursors` set SECRETS_KEY_ARN.
 * - `settings` sets the variables that it lists.
 * - `issuer` sets ISSUER and AUDIENCE. It also sets JWKS_URI if the deployment knows this URL.
 * - `console` sets ISSUER. It also sets CONSOLE_SECRET_PARAMETER and CONSOLE_SCOPE if the deployment has these settings.
 * - `mail` sets MAIL_FROM and SES_IDENTITY if the deployment has these settings.
 * - `identityProvider` sets USER_POOL_ID if the deployment has a user pool.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  readonly issuer?: "verify";
  /** The right to sign users in to the console. It includes reading the client secret of the console, if there is one. */
  readonly console?: "sign-in";
  readonly identityProvider?: "invite" | "withdraw";
  /** The right to send mail through SES, if the deployment has a sender. */
  readonly mail?: "send";
  readonly deliveryQueue?: "send";
  readonly poisonRecords?: "send";
  readonly importQueue?: "send";
  readonly exportQueue?: "send";
  readonly bulkQueue?: "send";
  /** `sign` uses existing webhook secrets, `make` also creates them. */
  readonly secrets?: "sign" | "make";
  /** `open` decrypts the tokens of existing sessions, `make` also creates sessions. */
  readonly sessionTokens?: "open" | "make";
  readonly cursors?: "make";
  readonly files?: Partial<Record<Folder, readonly FileAction[]>>;
  /** With this right, S3 answers 404 for a missing file. Without it, S3 answers 403, which could also mean a missing right. */
  readonly bucket?: "list";
  readonly settings?: readonly Setting[];
}

export const usesSecretsKey = ({ secrets, sessionTokens, cursors }: Access): boolean =>
  (secrets ?? sessionTokens ?? cursors) !== undefined;

export type TableAccess = NonNullable<Access["table"]>;
