/** Defines the types of the route table: routes, functions without a route, and their rights. */
import type { Family } from "#shared/db/keys.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  readonly path: string;
  /** The file below `functions/` without its extension. It is also the function's name. */
  readonly file: string;
  readonly access: Access;
  /** Whether the answer is streamed, because it may exceed the 6 MB of a buffered answer. `stream-endpoint.ts` then makes the function. */
  readonly streamed?: true;
  readonly public?: true;
  /** A throttle for this route, in addition to the one of the whole API. */
  readonly rate?: Rate;
}

/** Limits all callers together, so that one costly route cannot use up the requests of the whole API. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A function that an event source starts instead of a route. The event source adds the right to read its queue or stream. */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** The visibility timeout of the function's queue depends on it. */
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

export type Setting = "WEBHOOK_URL_POLICY" | "TIME_SCALE" | "DELIVERY_SENDERS";

/** The folders of the bucket: uploaded files, other files of imports, and exported files. */
export const folderNames = ["uploads", "imports", "exports"] as const;
export type Folder = (typeof folderNames)[number];
/** The right to `PutObject` includes uploading an object in parts. */
type FileAction = "PutObject" | "GetObject" | "DeleteObject" | "AbortMultipartUpload";

/**
 * The rights of a function. Each right also sets environment variables: `table` sets TABLE_NAME, `deliveryQueue` DELIVERY_QUEUE_URL,
 * `parkedRecords` PARKED_RECORDS_URL, `importQueue` IMPORT_QUEUE_URL, `exportQueue` EXPORT_QUEUE_URL, `files` BUCKET_NAME, `secrets`
 * SECRETS_KEY_ARN, and `settings` the variables with the names in its list. `issuer` sets ISSUER and AUDIENCE, and also JWKS_URI if the
 * deployment knows it. `identityProvider` sets USER_POOL_ID if the deployment has a user pool.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  readonly issuer?: "verify";
  readonly identityProvider?: "invite" | "withdraw";
  readonly deliveryQueue?: "send";
  /** Lets a function send to the queue of poison records (stream records that cannot be published). */
  readonly parkedRecords?: "send";
  readonly importQueue?: "send";
  readonly exportQueue?: "send";
  /** `sign` uses existing webhook secrets, `make` also creates them. */
  readonly secrets?: "sign" | "make";
  readonly files?: Partial<Record<Folder, readonly FileAction[]>>;
  /** Lets a function list the bucket. With this right S3 answers 404 for a missing file, so that 403 always means a fault. */
  readonly bucket?: "list";
  readonly settings?: readonly Setting[];
}

export type TableAccess = NonNullable<Access["table"]>;
