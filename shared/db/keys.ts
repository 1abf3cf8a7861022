/** The keys of the table, one function for each access pattern. Import it as a namespace, so that bundles contain only the used keys. */
import type { JobMessage } from "#shared/aws/sqs.ts";

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** Ids in a block. The records of a block share a partition, so a small number keeps the load of each partition low. */
export const IDS_PER_PARTITION = 128;

/** Number of partitions for the deliveries of a webhook. They divide the load of a busy webhook. */
export const DELIVERY_SHARDS = 8;

/** Number of partitions of the due index for deliveries. They divide the load of its writes. */
const DUE_SHARDS = 8;

/** Returns a text that sorts like the number. 2^53 has 16 digits. */
export const padded = (id: number): string => String(id).padStart(16, "0");

export const blockOf = (id: number): number => Math.floor(id / IDS_PER_PARTITION);

const referencePartition = (companyId: number): string => `C#${companyId}#REF`;
const referenceRow = (companyId: number, kind: string, id: number): Key => ({
  pk: referencePartition(companyId),
  sk: `${kind}#${padded(id)}`,
});
const prospectPartition = (companyId: number, partition: number): string => `C#${companyId}#P#${partition}`;
const deliveryPartition = (companyId: number, webhookId: number, shard: number): string =>
  `C#${companyId}#D#${webhookId}#${shard}`;
const addressPartition = (companyId: number, partition: number): string => `C#${companyId}#A#${partition}`;
const territoryPartition = (companyId: number): string => `C#${companyId}#T`;
const indexPartition = (companyId: number): string => `C#${companyId}#X`;
const webhookPartition = (companyId: number): string => `C#${companyId}#W`;

export const idCounter = (): Key => ({ pk: "IDS", sk: "IDS" });

/** Records that a company was erased. After a restore from an older backup, the company must be erased again. */
export const erasure = (companyId: number): Key => ({ pk: "ERASURES", sk: `E#${padded(companyId)}` });
export const erasures = (): { pk: string } => ({ pk: "ERASURES" });

export const identity = (sub: string): Key => ({ pk: `S#${sub}`, sk: "IDENTITY" });
/** All API keys of a service account. */
export const keyRing = (id: string): Key => ({ pk: `K#${id}`, sk: "KEYS" });
/** A session of the console. `digest` is the SHA-256 hash of the session's id. The table does not contain the id itself. */
export const session = (digest: string): Key => ({ pk: `SE#${digest}`, sk: "SESSION" });
/** The one user of the service who owns an e-mail address (in lower case). An invited user owns it only if no other company has it. */
export const email = (email: string): Key => ({ pk: `E#${email}`, sk: "EMAIL" });
/** The user of this company with this e-mail address, even if the owner of the address is a user of another company. */
export const companyEmail = (companyId: number, email: string): Key => ({
  pk: `E#${email}`,
  sk: `COMPANY#${companyId}`,
});
/** The number of invitations or mails of a company on one day (`YYYY-MM-DD`, UTC). */
export const quota = (companyId: number, name: "INVITATIONS" | "MAILS", day: string): Key => ({
  pk: `C#${companyId}#Q`,
  sk: `${name}#${day}`,
});

/** The company's settings, users, statuses and tags in one Query. */
export const reference = (companyId: number): { pk: string } => ({ pk: referencePartition(companyId) });
export const company = (companyId: number): Key => ({ pk: referencePartition(companyId), sk: "COMPANY" });
export const user = (companyId: number, id: number): Key => referenceRow(companyId, "USER", id);
export const status = (companyId: number, id: number): Key => referenceRow(companyId, "STATUS", id);
export const tag = (companyId: number, id: number): Key => referenceRow(companyId, "TAG", id);
/** Reserves the case-folded `value`, so that no two statuses, and no two tags, of a company have the same value. */
export const uniqueValue = (companyId: number, kind: "STATUS" | "TAG", value: string): Key => ({
  pk: referencePartition(companyId),
  sk: `UNIQUE#${kind}#${value}`,
});

/** The prospect last created for a `matchBy` value with this hash. `userId` is undefined for callers who see every prospect. */
export const matchClaim = (companyId: number, userId: number | undefined, digest: string): Key => ({
  pk: `C#${companyId}#MC#${userId ?? "all"}`,
  sk: `M#${digest}`,
});

/** One row for each range of id blocks that is reserved for prospects. A reader learns from these rows which partitions to read. */
export const prospectRanges = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#PR` });
export const prospectRange = (companyId: number, from: number): Key => ({
  pk: `C#${companyId}#PR`,
  sk: `R#${padded(from)}`,
});
export const prospectBlock = (companyId: number, blockNumber: number): { pk: string } => ({
  pk: prospectPartition(companyId, blockNumber),
});
export const prospect = (companyId: number, id: number): Key => ({
  pk: prospectPartition(companyId, blockOf(id)),
  sk: `P#${padded(id)}`,
});
export const prospectSpan = (companyId: number, first: number, last: number) => ({
  pk: prospectPartition(companyId, blockOf(first)),
  from: `P#${padded(first)}`,
  upTo: `P#${padded(last)}`,
});

export const idempotency = (companyId: number, userId: number, digest: string): Key => ({
  pk: `C#${companyId}#IK#${userId}`,
  sk: `I#${digest}`,
});

/** The results of one part of a request with several transactions. `digest` is the same in all repetitions of the request. */
export const requestPart = (companyId: number, userId: number, digest: string, part: number): Key => ({
  pk: `C#${companyId}#IK#${userId}`,
  sk: `P#${digest}#${String(part).padStart(4, "0")}`,
});

export const receipt = (companyId: number, userId: number, opId: string): Key => ({
  pk: `C#${companyId}#OP#${userId}`,
  sk: `O#${opId}`,
});
/** The prospect that a user created with this id of the client. A repeated create finds the row, which never expires. */
export const clientRecord = (companyId: number, userId: number, clientRecordId: string): Key => ({
  pk: `C#${companyId}#CR#${userId}`,
  sk: `R#${clientRecordId}`,
});

export const addressRanges = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#AR` });
export const addressRange = (companyId: number, from: number): Key => ({
  pk: `C#${companyId}#AR`,
  sk: `R#${padded(from)}`,
});
/** All addresses of one block of 128 ids, sorted by id. */
export const addressBlock = (companyId: number, blockNumber: number): { pk: string } => ({
  pk: addressPartition(companyId, blockNumber),
});

const importRow = (companyId: number, id: number): Key => ({ pk: `C#${companyId}#M#${id}`, sk: "IMPORT" });
export const importList = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#ML` });
const importsOf = (userId: number | undefined): string => (userId === undefined ? "M#" : `U#${padded(userId)}#`);
/** Each import has two entries: one among all imports of the company (`userId` is undefined), one among those that its user has begun. */
export const importEntry = (companyId: number, id: number, userId?: number): Key => ({
  pk: `C#${companyId}#ML`,
  sk: `${importsOf(userId)}${padded(id)}`,
});
/** The sort keys of the imports before `id`, or of all imports if `id` is undefined. */
export const importsBefore = (id: number | undefined, userId?: number) => ({
  from: importsOf(userId),
  upTo: `${importsOf(userId)}${id === undefined ? "~" : padded(id - 1)}`,
});
const exportRow = (companyId: number, id: number): Key => ({ pk: `C#${companyId}#E#${id}`, sk: "EXPORT" });
export const bulkJob = (companyId: number, id: number): Key => ({ pk: `C#${companyId}#J#${id}`, sk: "JOB" });
export const bulkJobs = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#JL` });
export const bulkJobEntry = (companyId: number, createdAt: string, id: number): Key => ({
  pk: `C#${companyId}#JL`,
  sk: `J#${createdAt}#${padded(id)}`,
});
export const bulkQueue = (companyId: number): Key => ({ pk: `C#${companyId}#JQ`, sk: "QUEUE" });

const jobKinds: Readonly<Record<string, JobMessage["kind"]>> = { M: "import", E: "export", J: "bulk" };
export const jobAt = ({ pk }: Key): JobMessage | undefined => {
  const [, companyId, letter = "", id] = /^C#(\d+)#([MEJ])#(\d+)$/.exec(pk) ?? [];
  const kind = jobKinds[letter];
  return kind === undefined ? undefined : { kind, companyId: Number(companyId), id: Number(id) };
};
/** The imports that are not completed. A failed or cancelled import is listed until the rows that it has written are deleted. */
export const openImports = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#MO` });
export const openImport = (companyId: number, id: number): Key => ({ pk: `C#${companyId}#MO`, sk: `M#${padded(id)}` });

/** The imported addresses of one block of 128 ids, packed into one row. An address that changes later gets a separate row. */
export const addressPack = (companyId: number, blockNumber: number): Key => ({
  pk: addressPartition(companyId, blockNumber),
  sk: "PACK",
});
export const address = (companyId: number, id: number): Key => ({
  pk: addressPartition(companyId, blockOf(id)),
  sk: `A#${padded(id)}`,
});

/** All territories of the company, sorted by creation time. */
export const territories = (companyId: number): { pk: string; begins: string } => ({
  pk: territoryPartition(companyId),
  begins: "T#",
});
export const territory = (companyId: number, createdAt: string, id: number): Key => ({
  pk: territoryPartition(companyId),
  sk: `T#${createdAt}#${padded(id)}`,
});
/** The number of the company's territories and the bytes of their polygons. Conditions on this row enforce the maximum of each. */
export const territoryCount = (companyId: number): Key => ({ pk: territoryPartition(companyId), sk: "COUNT" });
/** Finds a territory by its id: the row contains the creation time, which is a part of the territory's key. */
export const territoryLocator = (companyId: number, id: number): Key => ({
  pk: `C#${companyId}#I#${id}`,
  sk: "TERRITORY",
});
/** The row of a deleted territory. Lists do not read this partition. */
export const deletedTerritory = (companyId: number, id: number): Key => ({
  pk: `C#${companyId}#TD`,
  sk: `T#${padded(id)}`,
});

/** The delta entries and the head. A Query reads the head last, so the head lists the part of an entry that a flush has just moved. */
export const index = (companyId: number): { pk: string } => ({ pk: indexPartition(companyId) });
export const indexHead = (companyId: number): Key => ({ pk: indexPartition(companyId), sk: "HEAD" });
export const prospectDelta = (companyId: number, id: number, version: number): Key => ({
  pk: indexPartition(companyId),
  sk: `D#${id}#${version}`,
});
export const noteDelta = (companyId: number, prospectId: number, noteId: number, version: number): Key => ({
  pk: indexPartition(companyId),
  sk: `D#${prospectId}#N${noteId}#${version}`,
});
/** The long text of an unflushed delta entry, in a row with the entry's sort key. */
export const deltaText = (companyId: number, sk: string): Key => ({ pk: `C#${companyId}#XN`, sk });
export const deltaTexts = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XN` });
export const partManifests = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XM` });
export const partManifest = (companyId: number, partId: string): Key => ({ pk: `C#${companyId}#XM`, sk: partId });
export const indexItem = (companyId: number, owner: string, piece: string, number: number): Key => ({
  pk: `C#${companyId}#XS#${owner}`,
  sk: `${piece}#${number}`,
});
/** All index items of one segment or part. `owner` is its id. */
export const indexItems = (companyId: number, owner: string): { pk: string } => ({ pk: `C#${companyId}#XS#${owner}` });

const changeLogPartition = (companyId: number): string => `C#${companyId}#XL`;
/** The chunks of the change log with versions above `after` and up to `upTo`. */
export const chunks = (companyId: number, after: number, upTo: number) => ({
  pk: changeLogPartition(companyId),
  from: `C#${padded(after + 1)}`,
  upTo: `C#${padded(upTo)}~`,
});
/** One row of a chunk. Readers use the chunk as soon as the head of the company index has at least this version. */
export const chunk = (companyId: number, version: number, number: number): Key => ({
  pk: changeLogPartition(companyId),
  sk: `C#${padded(version)}#${String(number).padStart(3, "0")}`,
});

const dataKeyPartitions = { "webhook-secrets": "WK", "console-sessions": "SK", "sync-cursors": "CK" } as const;
export type DataKeyPurpose = keyof typeof dataKeyPartitions;
/** The encrypted data key of a company. Each purpose has a separate partition, so that an IAM policy can allow a single purpose. */
export const dataKey = (companyId: number, purpose: DataKeyPurpose): Key => ({
  pk: `C#${companyId}#${dataKeyPartitions[purpose]}`,
  sk: "KEY",
});

export const webhooks = (companyId: number): { pk: string } => ({ pk: webhookPartition(companyId) });
/** The number of the company's webhooks. A condition on this row enforces the maximum. */
export const webhookCount = (companyId: number): Key => ({ pk: webhookPartition(companyId), sk: "COUNT" });
export const webhook = (companyId: number, id: number): Key => ({
  pk: webhookPartition(companyId),
  sk: `W#${padded(id)}`,
});
export const webhookAt = ({ pk, sk }: Key): { companyId: number; webhookId: number } | undefined => {
  const [, companyId] = /^C#(\d+)#W$/.exec(pk) ?? [];
  const [, webhookId] = /^W#(\d+)$/.exec(sk) ?? [];
  return companyId === undefined || webhookId === undefined
    ? undefined
    : { companyId: Number(companyId), webhookId: Number(webhookId) };
};
export const registration = (companyId: number, webhookId: number, id: number): Key => ({
  pk: webhookPartition(companyId),
  sk: `W#${padded(webhookId)}#R#${padded(id)}`,
});

/** Delivery ids sort by time. The attempts of a delivery sort directly after it. */
export const delivery = (companyId: number, webhookId: number, id: string): Key => ({
  pk: deliveryPartition(companyId, webhookId, shardOf(id)),
  sk: `D#${id}`,
});
export const deliveryShard = (companyId: number, webhookId: number, shard: number): { pk: string } => ({
  pk: deliveryPartition(companyId, webhookId, shard),
});
/** The sort keys of the delivery `id` and of all older deliveries with their attempts, or of all deliveries if `id` is undefined. */
export const deliveriesBefore = (id: string | undefined) => ({ from: "D#", upTo: `D#${id ?? "~"}` });
export const attempt = (companyId: number, webhookId: number, deliveryId: string, number: number): Key => ({
  pk: deliveryPartition(companyId, webhookId, shardOf(deliveryId)),
  sk: `D#${deliveryId}#T#${String(number).padStart(4, "0")}`,
});

/** The partition of the due index in which a delivery waits until it is due. */
export const dueShard = (deliveryId: string): string => `DUE#${hash(deliveryId) % DUE_SHARDS}`;
/** The partition of the due index for imports, exports and bulk jobs. */
export const jobShard = "DUE#JOBS";
export const keyShard = "DUE#KEYS";
/** The row that requests a flush of the company index at a later time (shared/company-index/write/flush-stream.ts). */
export const flushRequest = (companyId: number): Key => ({ pk: `C#${companyId}#XF`, sk: "REQUEST" });
export const flushShard = "DUE#FLUSH";
/** The paused backlog of a webhook in the due index. Deliveries about single records of bulk jobs have a second partition, sent last. */
export const pausedBacklogShard = (companyId: number, webhookId: number, isBulk?: true): string =>
  `DUE#HELD#${companyId}#${webhookId}${isBulk ? "#BULK" : ""}`;
/** The throttled backlog of a webhook in the due index. Like the paused backlog, it has two partitions. */
export const throttledBacklogShard = (companyId: number, webhookId: number, isBulk?: true): string =>
  `DUE#GATED#${companyId}#${webhookId}${isBulk ? "#BULK" : ""}`;
/** The two partitions of a backlog, in the order in which their deliveries are sent. */
export const pausedBacklogShards = (companyId: number, webhookId: number) =>
  [pausedBacklogShard(companyId, webhookId), pausedBacklogShard(companyId, webhookId, true)] as const;
export const throttledBacklogShards = (companyId: number, webhookId: number) =>
  [throttledBacklogShard(companyId, webhookId), throttledBacklogShard(companyId, webhookId, true)] as const;
export const isPausedBacklog = (companyId: number, webhookId: number, shard: string | undefined): boolean =>
  pausedBacklogShards(companyId, webhookId).some((own) => own === shard);
export const isThrottledBacklog = (companyId: number, webhookId: number, shard: string | undefined): boolean =>
  throttledBacklogShards(companyId, webhookId).some((own) => own === shard);
export const pausedWebhooksShard = (): string => "DUE#PAUSED";
export const dueShards = (): string[] => Array.from({ length: DUE_SHARDS }, (_, shard) => `DUE#${shard}`);
export { exportRow as export, importRow as import };

export function shardOf(name: string): number {
  return hash(name) % DELIVERY_SHARDS;
}

/** FNV-1a. It only distributes keys over partitions, so it need not be secure. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/** The due index contains only rows that have the field `dueShard`. */
export const DUE_INDEX = { name: "due", partitionKey: "dueShard", sortKey: "dueAt" } as const;

/** Patterns of partition keys, for the condition key `dynamodb:LeadingKeys` of IAM policies. */
export const families = {
  ids: "IDS",
  identity: "S#*",
  keyRings: "K#*",
  sessions: "SE#*",
  email: "E#*",
  quotas: "C#*#Q",
  reference: "C#*#REF",
  prospectRanges: "C#*#PR",
  prospects: "C#*#P#*",
  addressRanges: "C#*#AR",
  places: "C#*#I#*",
  calendar: "C#*#K#*",
  agendas: "C#*#KA#*",
  addresses: "C#*#A#*",
  imports: "C#*#M#*",
  openImports: "C#*#MO",
  importList: "C#*#ML",
  exports: "C#*#E#*",
  bulkJobs: "C#*#J#*",
  bulkJobList: "C#*#JL",
  bulkQueues: "C#*#JQ",
  idempotency: "C#*#IK#*",
  receipts: "C#*#OP#*",
  clientRecords: "C#*#CR#*",
  matchClaims: "C#*#MC#*",
  territories: "C#*#T",
  deletedTerritories: "C#*#TD",
  index: "C#*#X",
  indexTexts: "C#*#XN",
  flushRequests: "C#*#XF",
  changeLog: "C#*#XL",
  factLog: "C#*#FL",
  dayFacts: "C#*#FD",
  manifests: "C#*#XM",
  segments: "C#*#XS#*",
  webhooks: "C#*#W",
  dataKeys: "C#*#WK",
  sessionDataKeys: "C#*#SK",
  cursorDataKeys: "C#*#CK",
  deliveries: "C#*#D#*",
  due: "DUE#*",
} as const;

export type Family = keyof typeof families;
