/** The access-pattern chart: every key of the table, one function per question the table can answer. */

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** Prospects (and addresses) whose ids share their upper bits live in one partition: at most 128 of them, so none is hot. */
export const IDS_PER_PARTITION = 128;

/** Delivery partitions per webhook: spreads one busy webhook over several partitions. */
export const DELIVERY_SHARDS = 8;

/** Partitions of the due index: spreads the write load of all waiting deliveries. */
export const DUE_SHARDS = 8;

/** Ids sort as numbers when every key writes them with the 16 digits of 2^53. */
export const padded = (id: number): string => String(id).padStart(16, "0");

/** The block of ids that this one shares a partition with. */
export const blockOf = (id: number): number => Math.floor(id / IDS_PER_PARTITION);

const reference = (companyId: number): string => `C#${companyId}#REF`;
const prospectPartition = (companyId: number, partition: number): string => `C#${companyId}#P#${partition}`;
const deliveryPartition = (companyId: number, webhookId: number, shard: number): string =>
  `C#${companyId}#D#${webhookId}#${shard}`;
const addressPartition = (companyId: number, partition: number): string => `C#${companyId}#A#${partition}`;
const territoryPartition = (companyId: number): string => `C#${companyId}#T`;
const indexPartition = (companyId: number): string => `C#${companyId}#X`;
const webhookPartition = (companyId: number): string => `C#${companyId}#W`;

export const keys = {
  /** The one global counter that id blocks are leased from. */
  idCounter: (): Key => ({ pk: "IDS", sk: "IDS" }),

  /** Which company and user does this token subject belong to? */
  identity: (sub: string): Key => ({ pk: `S#${sub}`, sk: "IDENTITY" }),
  /** Who has this e-mail address (lower case)? One user in the whole service. */
  email: (email: string): Key => ({ pk: `E#${email}`, sk: "EMAIL" }),
  /** And who has it within the company, whoever has it in the whole service? */
  companyEmail: (companyId: number, email: string): Key => ({ pk: `E#${email}`, sk: `COMPANY#${companyId}` }),
  /** How much of a daily quota has the company used? The day is `YYYY-MM-DD`, UTC. */
  quota: (companyId: number, name: "INVITATIONS", day: string): Key => ({
    pk: `C#${companyId}#Q`,
    sk: `${name}#${day}`,
  }),

  /** Company settings, users, statuses and tags: one Query reads all that names things. */
  reference: (companyId: number): { pk: string } => ({ pk: reference(companyId) }),
  company: (companyId: number): Key => ({ pk: reference(companyId), sk: "COMPANY" }),
  user: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `USER#${padded(id)}` }),
  status: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `STATUS#${padded(id)}` }),
  tag: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `TAG#${padded(id)}` }),
  /** Is this display value (folded) taken among the company's statuses or tags? */
  uniqueValue: (companyId: number, kind: "STATUS" | "TAG", value: string): Key => ({
    pk: reference(companyId),
    sk: `UNIQUE#${kind}#${value}`,
  }),

  /** Which id ranges has the company leased for its prospects? Lists every partition of prospects. */
  prospectRanges: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#PR` }),
  prospectRange: (companyId: number, from: number): Key => ({ pk: `C#${companyId}#PR`, sk: `R#${padded(from)}` }),
  /** All rows of the prospects in one id block (128 ids). */
  prospectBlock: (companyId: number, blockNumber: number): { pk: string } => ({
    pk: prospectPartition(companyId, blockNumber),
  }),
  prospect: (companyId: number, id: number): Key => ({
    pk: prospectPartition(companyId, blockOf(id)),
    sk: `P#${padded(id)}`,
  }),
  /** The prospects of one id block from one id to another. */
  prospectSpan: (companyId: number, first: number, last: number) => ({
    pk: prospectPartition(companyId, blockOf(first)),
    from: `P#${padded(first)}`,
    upTo: `P#${padded(last)}`,
  }),

  /** What came of a request under this idempotency key of the user? */
  idempotency: (companyId: number, userId: number, digest: string): Key => ({
    pk: `C#${companyId}#IK#${userId}`,
    sk: `I#${digest}`,
  }),

  /** Which id ranges has the company leased for its addresses? Lists every partition of addresses. */
  addressRanges: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#AR` }),
  addressRange: (companyId: number, from: number): Key => ({ pk: `C#${companyId}#AR`, sk: `R#${padded(from)}` }),
  /** All addresses in one id block (128 ids), in order of their ids. */
  addressBlock: (companyId: number, blockNumber: number): { pk: string } => ({
    pk: addressPartition(companyId, blockNumber),
  }),

  /** What became of an import? */
  import: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#M#${id}`, sk: "IMPORT" }),
  /** Which imports has the company? */
  importList: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#ML` }),
  importEntry: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#ML`, sk: `M#${padded(id)}` }),
  /** Of the list: what is older than this import; everything without one. */
  importsBefore: (id: number | undefined) => ({ from: "M#", upTo: `M#${id === undefined ? "~" : padded(id - 1)}` }),
  /** What became of an export? */
  export: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#E#${id}`, sk: "EXPORT" }),
  /** Which import or export stands under this key? */
  jobAt: ({ pk }: Key): { kind: "import" | "export"; companyId: number; id: number } | undefined => {
    const [, companyId, letter, id] = /^C#(\d+)#([ME])#(\d+)$/.exec(pk) ?? [];
    if (letter === undefined) return undefined;
    return { kind: letter === "M" ? "import" : "export", companyId: Number(companyId), id: Number(id) };
  },
  /** Which imports of a company were begun and neither completed nor cleared away? */
  openImports: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#MO` }),
  openImport: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#MO`, sk: `M#${padded(id)}` }),

  /** The addresses of an import with the ids of one block, as long as they have no rows of their own. */
  addressPack: (companyId: number, blockNumber: number): Key => ({
    pk: addressPartition(companyId, blockNumber),
    sk: "PACK",
  }),
  address: (companyId: number, id: number): Key => ({
    pk: addressPartition(companyId, blockOf(id)),
    sk: `A#${padded(id)}`,
  }),

  /** All territories of a company, in the order of their making. */
  territories: (companyId: number): { pk: string; begins: string } => ({
    pk: territoryPartition(companyId),
    begins: "T#",
  }),
  territory: (companyId: number, createdAt: string, id: number): Key => ({
    pk: territoryPartition(companyId),
    sk: `T#${createdAt}#${padded(id)}`,
  }),
  /** How many territories the company has, and how long their polygons are: the condition that keeps them within their limits. */
  territoryCount: (companyId: number): Key => ({ pk: territoryPartition(companyId), sk: "COUNT" }),
  /** When was the territory with this id made? Leads to its row. */
  territoryPlace: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#I#${id}`, sk: "TERRITORY" }),
  /** A deleted territory, where no list comes by. */
  deletedTerritory: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#TD`, sk: `T#${padded(id)}` }),

  /**
   * What has changed since the last flush of the company's index, and then the index's head: one Query. The head comes last
   * in the order of keys, so that what a flush takes away during the Query is in the segments of the head that it reads.
   */
  index: (companyId: number): { pk: string } => ({ pk: indexPartition(companyId) }),
  indexHead: (companyId: number): Key => ({ pk: indexPartition(companyId), sk: "HEAD" }),
  prospectDelta: (companyId: number, id: number, version: number): Key => ({
    pk: indexPartition(companyId),
    sk: `D#${id}#${version}`,
  }),
  noteDelta: (companyId: number, prospectId: number, noteId: number, version: number): Key => ({
    pk: indexPartition(companyId),
    sk: `D#${prospectId}#N${noteId}#${version}`,
  }),
  /** The long text of an unflushed entry, under the entry's sort key. */
  deltaText: (companyId: number, sk: string): Key => ({ pk: `C#${companyId}#XN`, sk }),
  deltaTexts: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XN` }),
  /** Of which segments do the runs of the company's index consist? One sheet for each run. */
  runManifests: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XM` }),
  runManifest: (companyId: number, runId: string): Key => ({ pk: `C#${companyId}#XM`, sk: runId }),
  /** A part of a piece of the index: of a column group of a segment, or of what a run holds beside its segments. */
  indexPart: (companyId: number, owner: string, piece: string, part: number): Key => ({
    pk: `C#${companyId}#XS#${owner}`,
    sk: `${piece}#${part}`,
  }),
  /** All parts of what belongs to a segment or run. */
  indexParts: (companyId: number, owner: string): { pk: string } => ({ pk: `C#${companyId}#XS#${owner}` }),

  /** All webhooks of a company with their registrations: one Query. */
  webhooks: (companyId: number): { pk: string } => ({ pk: webhookPartition(companyId) }),
  /** How many webhooks the company has: the condition that keeps them within their limit. */
  webhookCount: (companyId: number): Key => ({ pk: webhookPartition(companyId), sk: "COUNT" }),
  webhook: (companyId: number, id: number): Key => ({ pk: webhookPartition(companyId), sk: `W#${padded(id)}` }),
  /** Which webhook stands under this key? */
  webhookAt: ({ pk, sk }: Key): { companyId: number; id: number } | undefined => {
    const [, companyId] = /^C#(\d+)#W$/.exec(pk) ?? [];
    const [, id] = /^W#(\d+)$/.exec(sk) ?? [];
    return companyId === undefined || id === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
  registration: (companyId: number, webhookId: number, id: number): Key => ({
    pk: webhookPartition(companyId),
    sk: `W#${padded(webhookId)}#R#${padded(id)}`,
  }),

  /** A delivery; `begins_with(sk, delivery.sk)` also reads its attempts. Ids sort by time. */
  delivery: (companyId: number, webhookId: number, id: string): Key => ({
    pk: deliveryPartition(companyId, webhookId, shardOf(id)),
    sk: `D#${id}`,
  }),
  /** One of the partitions that hold a webhook's deliveries, in order of time. */
  deliveryShard: (companyId: number, webhookId: number, shard: number): { pk: string } => ({
    pk: deliveryPartition(companyId, webhookId, shard),
  }),
  /** Of such a partition: what is older than this delivery; everything without one. */
  deliveriesBefore: (id: string | undefined) => ({ from: "D#", upTo: `D#${id ?? "~"}` }),
  attempt: (companyId: number, webhookId: number, deliveryId: string, number: number): Key => ({
    pk: deliveryPartition(companyId, webhookId, shardOf(deliveryId)),
    sk: `D#${deliveryId}#T#${String(number).padStart(4, "0")}`,
  }),

  /** Partition of the due index that a waiting delivery stands in. */
  dueShard: (deliveryId: string): string => `DUE#${hash(deliveryId) % DUE_SHARDS}`,
  /** Partition of the due index for imports and exports that somebody has to look after. */
  jobShard: "DUE#JOBS",
  /** Partition of the due index for what a paused webhook keeps, in the order of time. */
  heldShard: (companyId: number, webhookId: number): string => `DUE#HELD#${companyId}#${webhookId}`,
  /** And for what waits at the gate of a webhook: all its places are taken, or its breaker is open. */
  gatedShard: (companyId: number, webhookId: number): string => `DUE#GATED#${companyId}#${webhookId}`,
  /** And for the rows of paused webhooks themselves: which are there? */
  pausedShard: (): string => "DUE#PAUSED",
  dueShards: (): string[] => Array.from({ length: DUE_SHARDS }, (_, shard) => `DUE#${shard}`),
} as const;

/** One of the shards that things of this name are spread over. */
export function shardOf(name: string): number {
  return hash(name) % DELIVERY_SHARDS;
}

/** FNV-1a over UTF-16 units: spreads delivery ids over shards, nothing more. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/** Sparse index of waiting deliveries by the time they are due. */
export const DUE_INDEX = { name: "due", partitionKey: "dueShard", sortKey: "dueAt" } as const;
