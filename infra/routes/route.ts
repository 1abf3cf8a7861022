/** Defines the types of the route table: routes, functions without a route, and the rights of functions. */
import type { Family } from "#shared/db/keys.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  readonly path: string;
  /** The path of the function's file below `functions/`, without its extension. Settings in `capacity.ts` name functions by it. */
  readonly file: string;
  /**
   * The operation id in the OpenAPI document, for a route whose file has been renamed since a release. Code generators name methods after
   * this id, so it must not change. All other routes get an id from `file`.
   */
  readonly operationId?: string;
  readonly access: Access;
  /**
   * True if the response is streamed, because it may exceed 6 MB, the limit of a response that is not streamed. In this case,
   * `shared/http/streaming.ts` creates the handler.
   */
  readonly streamed?: true;
  readonly public?: true;
  /** True if a POST changes nothing. It then takes no idempotency key, so it needs no rights to the rows of these keys. */
  readonly isRead?: true;
  /** A separate throttle for this route. It applies instead of the throttle of the whole API. */
  readonly rate?: Rate;
}

/** A limit for the requests of all callers together. It keeps a costly route from using the capacity of the whole API. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * A function without a route. If a queue or a stream invokes the function, `infra/stack/workers.ts` adds the right to read this queue or
 * stream.
 */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** The time-out. The visibility timeout of the function's queue is computed from it. */
  readonly timeoutSeconds: number;
}

/**
 * DynamoDB actions by their IAM names. A transaction needs the actions of its parts. A batch of PartiQL statements needs the PartiQL
 * actions.
 */
export type TableAction =
  | "GetItem"
  | "BatchGetItem"
  | "Query"
  | "PutItem"
  | "UpdateItem"
  | "DeleteItem"
  | "BatchWriteItem"
  | "ConditionCheckItem"
  | "PartiQLInsert";

export type Setting = "WEBHOOK_URL_POLICY" | "TIME_SCALE" | "DELIVERY_SENDERS";

/** The folders of the bucket: files that users upload, other files of imports, exported files, and files of bulk jobs. */
export const folderNames = ["uploads", "imports", "exports", "bulk"] as const;
export type Folder = (typeof folderNames)[number];
/** The right `PutObject` includes multipart uploads. */
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
 * - `identityProvider` sets USER_POOL_ID if the deployment has a user pool.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  readonly issuer?: "verify";
  /** The right to sign users in to the console. It includes reading the client secret of the console, if there is one. */
  readonly console?: "sign-in";
  readonly identityProvider?: "invite" | "withdraw";
  readonly deliveryQueue?: "send";
  /** The right to send to the queue of poison records. These are stream records from which no event can be created. */
  readonly poisonRecords?: "send";
  readonly importQueue?: "send";
  readonly exportQueue?: "send";
  readonly bulkQueue?: "send";
  /** `sign` is the right to use existing webhook secrets. `make` also includes the right to create webhook secrets. */
  readonly secrets?: "sign" | "make";
  /** `open` is the right to decrypt the tokens of existing sessions. `make` also includes the right to create sessions. */
  readonly sessionTokens?: "open" | "make";
  /** The right to encrypt and decrypt cursors of `GET /api/changes`. */
  readonly cursors?: "make";
  readonly files?: Partial<Record<Folder, readonly FileAction[]>>;
  /**
   * The right to list the bucket. With this right, S3 responds with 404 for a missing file. Without it, S3 responds with 403, which could
   * also mean a missing right.
   */
  readonly bucket?: "list";
  readonly settings?: readonly Setting[];
}

/** Returns true if the function uses the KMS key. The same KMS key protects webhook secrets, session tokens and cursors. */
export const usesSecretsKey = ({ secrets, sessionTokens, cursors }: Access): boolean =>
  (secrets ?? sessionTokens ?? cursors) !== undefined;

export type TableAccess = NonNullable<Access["table"]>;
