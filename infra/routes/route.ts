/** The entries of the route table: a route, a function without a route, and what a function may touch. */
import type { Family } from "#shared/db/keys.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  /** Resource path with `{id}` placeholders. */
  readonly path: string;
  /** File below `functions/` without its extension; also the function's name. */
  readonly file: string;
  readonly access: Access;
  /** The answer may exceed the 6 MB of a buffered one, so the function is made by `stream-endpoint.ts`. */
  readonly streamed?: true;
  /** Needs no access token. */
  readonly public?: true;
  /** A throttle of its own, below the stage's. */
  readonly rate?: Rate;
}

/** For all callers together: the rest of the API keeps the requests that one costly route may not take. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A function that no route calls. Its event source adds the rights to read a queue or stream. */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** The queue's visibility timeout is derived from it. */
  readonly timeoutSeconds: number;
}

/** DynamoDB actions by their IAM names. A transaction needs the actions of its parts, a batch of statements those of PartiQL. */
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

/** Settings of the deployment that a function reads from its environment. */
export type Setting = "WEBHOOK_URL_POLICY" | "TIME_SCALE" | "DELIVERY_SENDERS";

/** Folders of the bucket: uploads for imports, other files of imports, and the files of exports. */
export const folderNames = ["uploads", "imports", "exports"] as const;
export type Folder = (typeof folderNames)[number];
/** The right to put an object is also the right to write it in parts. */
type FileAction = "PutObject" | "GetObject" | "DeleteObject" | "AbortMultipartUpload";

/**
 * The rights of a function. Each entry is a right with its environment variables: `table` sets TABLE_NAME, `deliveryQueue`
 * DELIVERY_QUEUE_URL, `parkedRecords` PARKED_RECORDS_URL, `importQueue` IMPORT_QUEUE_URL, `exportQueue` EXPORT_QUEUE_URL, `files`
 * BUCKET_NAME, `secrets` SECRETS_KEY_ARN, and `settings` the variables of these names. `issuer` sets ISSUER, AUDIENCE and, if the
 * deployment knows it, JWKS_URI. `identityProvider` sets USER_POOL_ID if the deployment has a user pool.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  /** Verifies access tokens. */
  readonly issuer?: "verify";
  readonly identityProvider?: "invite" | "withdraw";
  readonly deliveryQueue?: "send";
  /** The queue of poison records. */
  readonly parkedRecords?: "send";
  readonly importQueue?: "send";
  readonly exportQueue?: "send";
  /** Secrets of webhooks: `sign` uses them, `make` also creates them. */
  readonly secrets?: "sign" | "make";
  /** By folder of the bucket. */
  readonly files?: Partial<Record<Folder, readonly FileAction[]>>;
  /** For functions that read files: with this right S3 answers 404 for a missing file, and 403 only for a fault. */
  readonly bucket?: "list";
  readonly settings?: readonly Setting[];
}

export type TableAccess = NonNullable<Access["table"]>;
