/** What a function may touch, as the route table says it, and what many functions touch alike. */
import type { Family } from "#shared/db/families.ts";

/** DynamoDB actions as IAM names them. A transaction needs the actions of its parts, a batch of statements those of PartiQL. */
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

/** Folders of the bucket: what is uploaded for imports, what else belongs to imports, and what exports have made. */
export const folderNames = ["uploads", "imports", "exports"] as const;
export type Folder = (typeof folderNames)[number];
/** The right to put an object is also the one to write it in parts. */
type FileAction = "PutObject" | "GetObject" | "DeleteObject" | "AbortMultipartUpload";

/**
 * What a function may touch. Each entry is the right and the environment variable that goes with it: `table` brings
 * TABLE_NAME, `issuer` brings ISSUER, AUDIENCE and JWKS_URI where the deployment knows it, `identityProvider` brings USER_POOL_ID where the deployment has a user pool, `deliveryQueue` brings DELIVERY_QUEUE_URL, `parkedRecords` PARKED_RECORDS_URL,
 * `importQueue` IMPORT_QUEUE_URL, `exportQueue` EXPORT_QUEUE_URL, `files` BUCKET_NAME, `secrets` SECRETS_KEY_ARN, `settings` the variables of their names.
 */
export interface Access {
  readonly table?: Partial<Record<Family, readonly TableAction[]>>;
  /** Verifies access tokens. */
  readonly issuer?: "verify";
  readonly identityProvider?: "invite" | "withdraw";
  readonly deliveryQueue?: "send";
  readonly parkedRecords?: "send";
  readonly importQueue?: "send";
  readonly exportQueue?: "send";
  /** Secrets of webhooks: to sign with them, or also to make them. */
  readonly secrets?: "sign" | "make";
  /** In these folders of the bucket. */
  readonly files?: Partial<Record<Folder, readonly FileAction[]>>;
  /** For functions that read files themselves: S3 then answers 404 for a file that is not there, and 403 for faults alone. */
  readonly bucket?: "list";
  readonly settings?: readonly Setting[];
}

export type TableAccess = NonNullable<Access["table"]>;

/** A company, user, status or tag by its id. */
export const named: TableAccess = { reference: ["GetItem"] };
/** The names of the company's statuses, tags and users. */
export const dictionary: TableAccess = { reference: ["Query"] };
export const newIds: TableAccess = { ids: ["UpdateItem"] };
/** Whether the import that a row came with is completed. */
export const imports: TableAccess = { imports: ["GetItem"] };
/** The next appointment of a prospect that has more than its row keeps, or kept ones that have passed. */
export const upcoming: TableAccess = { agendas: ["GetItem"] };
/** A prospect's or note's row goes with its entry in the company index. */
export const indexEntries: TableAccess = { index: ["PutItem"], indexTexts: ["PutItem"] };
/** A write of a status, tag or user says in the company's row and in its index that names have changed. */
export const namesChange: TableAccess = { index: ["UpdateItem"] };
