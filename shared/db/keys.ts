/**
 * The keys of the table: one function for each question that the table answers. Import this file as a namespace (`import * as keys`), so
 * that a bundle contains only the keys that it uses.
 */

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** Number of ids in a block. All records of a block share a partition, which is small enough not to get too many requests. */
export const IDS_PER_PARTITION = 128;

/** Number of partitions for the deliveries of one webhook. They divide the load of a busy webhook. */
export const DELIVERY_SHARDS = 8;

/** Number of partitions of the due index (waiting deliveries by due time). They divide the load of its writes. */
export const DUE_SHARDS = 8;

/** Pads the id with zeros, so that texts sort like the numbers. 2^53 has 16 digits. */
export const padded = (id: number): string => String(id).padStart(16, "0");

export const blockOf = (id: number): number => Math.floor(id / IDS_PER_PARTITION);

const referencePartition = (companyId: number): string => `C#${companyId}#REF`;
const prospectPartition = (companyId: number, partition: number): string => `C#${companyId}#P#${partition}`;
const deliveryPartition = (companyId: number, webhookId: number, shard: number): string =>
  `C#${companyId}#D#${webhookId}#${shard}`;
const addressPartition = (companyId: number, partition: number): string => `C#${companyId}#A#${partition}`;
const territoryPartition = (companyId: number): string => `C#${companyId}#T`;
const indexPartition = (companyId: number): string => `C#${companyId}#X`;
const webhookPartition = (companyId: number): string => `C#${companyId}#W`;

export const idCounter = (): Key => ({ pk: "IDS", sk: "IDS" });

/**
 * The record that a company was erased. It is kept after the company, so that a restored older table can be erased again. It is not a row
 * of the company.
 */
export const erasure = (companyId: number): Key => ({ pk: "ERASURES", sk: `E#${padded(companyId)}` });
export const erasures = (): { pk: string } => ({ pk: "ERASURES" });

/** The row of a token subject, with its company and user. */
export const identity = (sub: string): Key => ({ pk: `S#${sub}`, sk: "IDENTITY" });
/**
 * The row of an e-mail address (in lower case) with the user who owns it in the whole service. An invited user owns it only if no user of
 * another company does.
 */
export const email = (email: string): Key => ({ pk: `E#${email}`, sk: "EMAIL" });
/**
 * The row of an e-mail address with the user of this company who has it. An invited user has this row even if a user of another company
 * owns the address.
 */
export const companyEmail = (companyId: number, email: string): Key => ({
  pk: `E#${email}`,
  sk: `COMPANY#${companyId}`,
});
/** The company's usage of a daily quota. The day is `YYYY-MM-DD`, UTC. */
export const quota = (companyId: number, name: "INVITATIONS", day: string): Key => ({
  pk: `C#${companyId}#Q`,
  sk: `${name}#${day}`,
});

/** The company's settings, users, statuses and tags, which one Query reads. */
export const reference = (companyId: number): { pk: string } => ({ pk: referencePartition(companyId) });
export const company = (companyId: number): Key => ({ pk: referencePartition(companyId), sk: "COMPANY" });
export const user = (companyId: number, id: number): Key => ({
  pk: referencePartition(companyId),
  sk: `USER#${padded(id)}`,
});
export const status = (companyId: number, id: number): Key => ({
  pk: referencePartition(companyId),
  sk: `STATUS#${padded(id)}`,
});
export const tag = (companyId: number, id: number): Key => ({
  pk: referencePartition(companyId),
  sk: `TAG#${padded(id)}`,
});
/**
 * Reserves the value of a status or tag: the text that users see, here in case-folded form. A company therefore has no two statuses or
 * tags with the same value.
 */
export const uniqueValue = (companyId: number, kind: "STATUS" | "TAG", value: string): Key => ({
  pk: referencePartition(companyId),
  sk: `UNIQUE#${kind}#${value}`,
});

/** The id ranges that the company has reserved for its prospects. They cover all partitions of its prospects. */
export const prospectRanges = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#PR` });
export const prospectRange = (companyId: number, from: number): Key => ({
  pk: `C#${companyId}#PR`,
  sk: `R#${padded(from)}`,
});
/** All rows of the prospects in one block of 128 ids. */
export const prospectBlock = (companyId: number, blockNumber: number): { pk: string } => ({
  pk: prospectPartition(companyId, blockNumber),
});
export const prospect = (companyId: number, id: number): Key => ({
  pk: prospectPartition(companyId, blockOf(id)),
  sk: `P#${padded(id)}`,
});
/** The rows of the prospects themselves in one block of 128 ids, without notes and other rows. */
export const prospectsOfBlock = (companyId: number, blockNumber: number) => ({
  pk: prospectPartition(companyId, blockNumber),
  begins: "P#",
});
/** The progress of `npm run migrate` with the company's prospects. */
export const reshaping = (companyId: number): Key => ({ pk: `C#${companyId}#V`, sk: "PROSPECTS" });
export const prospectSpan = (companyId: number, first: number, last: number) => ({
  pk: prospectPartition(companyId, blockOf(first)),
  from: `P#${padded(first)}`,
  upTo: `P#${padded(last)}`,
});

export const idempotency = (companyId: number, userId: number, digest: string): Key => ({
  pk: `C#${companyId}#IK#${userId}`,
  sk: `I#${digest}`,
});

/** The id ranges that the company has reserved for its addresses. They cover all partitions of its addresses. */
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
export const importEntry = (companyId: number, id: number): Key => ({ pk: `C#${companyId}#ML`, sk: `M#${padded(id)}` });
/** The imports with lower ids than `id`, or all imports if `id` is undefined. */
export const importsBefore = (id: number | undefined) => ({
  from: "M#",
  upTo: `M#${id === undefined ? "~" : padded(id - 1)}`,
});
const exportRow = (companyId: number, id: number): Key => ({ pk: `C#${companyId}#E#${id}`, sk: "EXPORT" });
/** Returns the import or export to which a row belongs. Returns undefined for any other row. */
export const jobAt = ({ pk }: Key): { kind: "import" | "export"; companyId: number; id: number } | undefined => {
  const [, companyId, letter, id] = /^C#(\d+)#([ME])#(\d+)$/.exec(pk) ?? [];
  if (letter === undefined) return undefined;
  return { kind: letter === "M" ? "import" : "export", companyId: Number(companyId), id: Number(id) };
};
/** The company's imports that are neither completed nor deleted. */
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
/** The number of the company's territories and the total size of their polygons. Writes check both limits with conditions on this row. */
export const territoryCount = (companyId: number): Key => ({ pk: territoryPartition(companyId), sk: "COUNT" });
/** The locator of a territory: the row that finds it by its id. It contains the creation time, which is part of the territory's key. */
export const territoryLocator = (companyId: number, id: number): Key => ({
  pk: `C#${companyId}#I#${id}`,
  sk: "TERRITORY",
});
/** A deleted territory. Lists do not read this partition. */
export const deletedTerritory = (companyId: number, id: number): Key => ({
  pk: `C#${companyId}#TD`,
  sk: `T#${padded(id)}`,
});

/**
 * The unflushed entries (recent changes) and the head row (list of stored parts) of the company's search index. One Query reads them, the
 * head row last. A flush may move an entry into a stored part during the Query. The Query then finds either the entry or a head row that
 * includes the part.
 */
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
/** The long text of an unflushed entry (recent change) of the search index. This row has the same sort key as the entry. */
export const deltaText = (companyId: number, sk: string): Key => ({ pk: `C#${companyId}#XN`, sk });
export const deltaTexts = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XN` });
/** The run manifests of the company's search index. Each lists the segments of one run (a sorted part of the index). */
export const runManifests = (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XM` });
export const runManifest = (companyId: number, runId: string): Key => ({ pk: `C#${companyId}#XM`, sk: runId });
export const indexPart = (companyId: number, owner: string, piece: string, part: number): Key => ({
  pk: `C#${companyId}#XS#${owner}`,
  sk: `${piece}#${part}`,
});
/** All binary data of a segment or run of the company's search index. */
export const indexParts = (companyId: number, owner: string): { pk: string } => ({ pk: `C#${companyId}#XS#${owner}` });

export const webhooks = (companyId: number): { pk: string } => ({ pk: webhookPartition(companyId) });
/** The number of the company's webhooks. Writes check the limit with a condition on this row. */
export const webhookCount = (companyId: number): Key => ({ pk: webhookPartition(companyId), sk: "COUNT" });
export const webhook = (companyId: number, id: number): Key => ({
  pk: webhookPartition(companyId),
  sk: `W#${padded(id)}`,
});
/** Returns the webhook to which a row belongs. Returns undefined for any other row. */
export const webhookAt = ({ pk, sk }: Key): { companyId: number; id: number } | undefined => {
  const [, companyId] = /^C#(\d+)#W$/.exec(pk) ?? [];
  const [, id] = /^W#(\d+)$/.exec(sk) ?? [];
  return companyId === undefined || id === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
};
export const registration = (companyId: number, webhookId: number, id: number): Key => ({
  pk: webhookPartition(companyId),
  sk: `W#${padded(webhookId)}#R#${padded(id)}`,
});

/** A delivery. The sort keys of its attempts begin with its sort key. Delivery ids sort by time. */
export const delivery = (companyId: number, webhookId: number, id: string): Key => ({
  pk: deliveryPartition(companyId, webhookId, shardOf(id)),
  sk: `D#${id}`,
});
export const deliveryShard = (companyId: number, webhookId: number, shard: number): { pk: string } => ({
  pk: deliveryPartition(companyId, webhookId, shard),
});
/** The deliveries of one partition that are older than the delivery `id`, and that delivery itself. All of them if `id` is undefined. */
export const deliveriesBefore = (id: string | undefined) => ({ from: "D#", upTo: `D#${id ?? "~"}` });
export const attempt = (companyId: number, webhookId: number, deliveryId: string, number: number): Key => ({
  pk: deliveryPartition(companyId, webhookId, shardOf(deliveryId)),
  sk: `D#${deliveryId}#T#${String(number).padStart(4, "0")}`,
});

/** The partition of the due index (waiting deliveries by due time) for a delivery. */
export const dueShard = (deliveryId: string): string => `DUE#${hash(deliveryId) % DUE_SHARDS}`;
/**
 * The partition of the due index (an index of rows by due time) for unfinished imports and exports. The sweeper, which runs every minute,
 * continues them or deletes their rows.
 */
export const jobShard = "DUE#JOBS";
/**
 * The partition of the due index (an index of rows by due time) with the paused backlog of a webhook: the deliveries that wait while it
 * is paused.
 */
export const pausedBacklogShard = (companyId: number, webhookId: number): string =>
  `DUE#HELD#${companyId}#${webhookId}`;
/**
 * The partition of the due index (an index of rows by due time) with the throttled backlog of a webhook: deliveries for which the limiter
 * had no free slot, or whose circuit breaker was open.
 */
export const throttledBacklogShard = (companyId: number, webhookId: number): string =>
  `DUE#GATED#${companyId}#${webhookId}`;
/** The partition of the due index (an index of rows by due time) for the rows of paused webhooks. */
export const pausedWebhooksShard = (): string => "DUE#PAUSED";
export const dueShards = (): string[] => Array.from({ length: DUE_SHARDS }, (_, shard) => `DUE#${shard}`);
export { exportRow as export, importRow as import };

export function shardOf(name: string): number {
  return hash(name) % DELIVERY_SHARDS;
}

/** The FNV-1a hash. It only distributes keys over partitions. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/** The secondary index of waiting deliveries, sorted by due time. It contains only rows that have the field `dueShard`. */
export const DUE_INDEX = { name: "due", partitionKey: "dueShard", sortKey: "dueAt" } as const;

/**
 * Patterns of partition keys. The IAM policy of a function allows only the patterns that the function needs, with the condition key
 * `dynamodb:LeadingKeys`.
 */
export const families = {
  ids: "IDS",
  identity: "S#*",
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
  idempotency: "C#*#IK#*",
  territories: "C#*#T",
  deletedTerritories: "C#*#TD",
  index: "C#*#X",
  indexTexts: "C#*#XN",
  manifests: "C#*#XM",
  segments: "C#*#XS#*",
  webhooks: "C#*#W",
  dataKeys: "C#*#WK",
  deliveries: "C#*#D#*",
  due: "DUE#*",
} as const;

export type Family = keyof typeof families;
