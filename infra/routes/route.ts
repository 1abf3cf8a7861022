/** The types of the route table: a route, a function without a route, and the rights of a function. */
import type { Family } from "#shared/db/keys.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  /** The path of the resource with `{id}` placeholders. */
  readonly path: string;
  /** The file below `functions/` without its extension, which is also the name of the function. */
  readonly file: string;
  readonly access: Access;
  /**
   * Whether the answer is streamed, because it may exceed the 6 MB of a buffered answer. The function is then made by
   * `stream-endpoint.ts`.
   */
  readonly streamed?: true;
  /** Whether the route needs no access token. */
  readonly public?: true;
  /** A separate throttle for this route, below the throttle of the stage. */
  readonly rate?: Rate;
}

/** A throttle for all callers together. It prevents one costly route from using the requests that the rest of the API needs. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A function that no route calls. Its event source adds the right to read a queue or stream. */
export interface EventFunction {
  readonly file: string;
  readonly access: Access;
  /** The timeout of the function. The visibility timeout of its queue depends on it. */
  readonly timeoutSeconds: number;
}

/**
 * DynamoDB actions by their IAM names. A transaction needs the actions of its parts. A batch of statements needs the actions of PartiQL.
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

/** Settings of the deployment that a function reads from its environment. */
export type Setting = "WEBHOOK_URL_POLICY" | "TIME_SCALE" | "DELIVERY_SENDERS";

/** The folders of the bucket: uploads for imports, other files of imports, and the files of exports. */
export const folderNames = ["uploads", "imports", "exports"] as const;
export type Folder = (typeof folderNames)[number];
/** The actions on files. The right to put an object includes the right to upload the object in parts. */
type FileAction = "PutObject" | "GetObject" | "DeleteObject" | "AbortMultipartUpload";

/**
 * The rights of a function. Each right also sets environment variables: `table` sets TABLE_NAME, `deliveryQueue` DELIVERY_QUEUE_URL,
 * `parkedRecords` PARKED_RECORDS_URL, `importQueue` IMPORT_QUEUE_URL, `exportQueue` EXPORT_QUEUE_URL, `files` BUCKET_NAME, `secrets`
 * SECRETS_KEY_ARN, and `settings` the variables with the names in its list. `issuer` sets ISSUER and AUDIENCE, and also JWKS_URI if the
 * deployment knows it. `identityProvider` sets USER_POOL_ID if the deployment has a user pool.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  /** The right to verify access tokens, which needs the settings of the issuer. */
  readonly issuer?: "verify";
  readonly identityProvider?: "invite" | "withdraw";
  readonly deliveryQueue?: "send";
  /** The right to send to the queue of poison records. */
  readonly parkedRecords?: "send";
  readonly importQueue?: "send";
  readonly exportQueue?: "send";
  /** The right to use secrets of webhooks. `sign` uses existing secrets, and `make` also creates secrets. */
  readonly secrets?: "sign" | "make";
  /** The actions on files, by folder of the bucket. */
  readonly files?: Partial<Record<Folder, readonly FileAction[]>>;
  /** A right for functions that read files. With this right S3 answers 404 for a missing file, so that 403 always means a fault. */
  readonly bucket?: "list";
  readonly settings?: readonly Setting[];
}

export type TableAccess = NonNullable<Access["table"]>;
