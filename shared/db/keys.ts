/** The keys of the DynamoDB table, one function for each access pattern. The keys of webhook delivery are in webhook-keys.ts. */

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** Number of ids in a block. All records of a block share a partition, which is small enough not to become a hot partition. */
export const IDS_PER_PARTITION = 128;

/** Number of partitions for the deliveries of one webhook, to spread the load of a busy webhook. */
export const DELIVERY_SHARDS = 8;

/** Number of partitions of the due index, to spread the writes of all waiting deliveries. */
export const DUE_SHARDS = 8;

/** Pads the id so that texts sort like the numbers. 2^53 has 16 digits. */
export const padded = (id: number): string => String(id).padStart(16, "0");

/** The number of the id's block of 128 ids. */
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
  /** The global counter from which blocks of ids are reserved. */
  idCounter: (): Key => ({ pk: "IDS", sk: "IDS" }),

  /** The company and user of a token subject. */
  identity: (sub: string): Key => ({ pk: `S#${sub}`, sk: "IDENTITY" }),
  /** The user with this e-mail address (in lower case). The address belongs to at most one user of the whole service. */
  email: (email: string): Key => ({ pk: `E#${email}`, sk: "EMAIL" }),
  /** The user of this company with this e-mail address. The same address may belong to a user of another company. */
  companyEmail: (companyId: number, email: string): Key => ({ pk: `E#${email}`, sk: `COMPANY#${companyId}` }),
  /** The company's usage of a daily quota. The day is `YYYY-MM-DD`, UTC. */
  quota: (companyId: number, name: "INVITATIONS", day: string): Key => ({
    pk: `C#${companyId}#Q`,
    sk: `${name}#${day}`,
  }),

  /** The company's settings, users, statuses and tags, which one Query reads. */
  reference: (companyId: number): { pk: string } => ({ pk: reference(companyId) }),
  company: (companyId: number): Key => ({ pk: reference(companyId), sk: "COMPANY" }),
  user: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `USER#${padded(id)}` }),
  status: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `STATUS#${padded(id)}` }),
  tag: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `TAG#${padded(id)}` }),
  /** Reserves a case-folded display value, so that a company has no two statuses or tags with the same value. */
  uniqueValue: (companyId: number, kind: "STATUS" | "TAG", value: string): Key => ({
    pk: reference(companyId),
    sk: `UNIQUE#${kind}#${value}`,
  }),

  /** The id ranges that the company has reserved for its prospects. They cover all partitions of its prospects. */
  prospectRanges: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#PR` }),
  prospectRange: (companyId: number, from: number): Key => ({ pk: `C#${companyId}#PR`, sk: `R#${padded(from)}` }),
  /** All rows of the prospects in one block of 128 ids. */
  prospectBlock: (companyId: number, blockNumber: number): { pk: string } => ({
    pk: prospectPartition(companyId, blockNumber),
  }),
  prospect: (companyId: number, id: number): Key => ({
    pk: prospectPartition(companyId, blockOf(id)),
    sk: `P#${padded(id)}`,
  }),
  /** The prospects of one block of 128 ids from `first` to `last`, both included. */
  prospectSpan: (companyId: number, first: number, last: number) => ({
    pk: prospectPartition(companyId, blockOf(first)),
    from: `P#${padded(first)}`,
    upTo: `P#${padded(last)}`,
  }),

  /** The stored answer to a request with this idempotency key. */
  idempotency: (companyId: number, userId: number, digest: string): Key => ({
    pk: `C#${companyId}#IK#${userId}`,
    sk: `I#${digest}`,
  }),

  /** The id ranges that the company has reserved for its addresses. They cover all partitions of its addresses. */
  addressRanges: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#AR` }),
  addressRange: (companyId: number, from: number): Key => ({ pk: `C#${companyId}#AR`, sk: `R#${padded(from)}` }),
  /** All addresses of one block of 128 ids, sorted by id. */
  addressBlock: (companyId: number, blockNumber: number): { pk: string } => ({
    pk: addressPartition(companyId, blockNumber),
  }),

  /** The state of an import. */
  import: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#M#${id}`, sk: "IMPORT" }),
  /** The list of the company's imports. */
  importList: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#ML` }),
  importEntry: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#ML`, sk: `M#${padded(id)}` }),
  /** The imports before this one, or all imports if the id is undefined. */
  importsBefore: (id: number | undefined) => ({ from: "M#", upTo: `M#${id === undefined ? "~" : padded(id - 1)}` }),
  /** The state of an export. */
  export: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#E#${id}`, sk: "EXPORT" }),
  /** The import or export of a row. */
  jobAt: ({ pk }: Key): { kind: "import" | "export"; companyId: number; id: number } | undefined => {
    const [, companyId, letter, id] = /^C#(\d+)#([ME])#(\d+)$/.exec(pk) ?? [];
    if (letter === undefined) return undefined;
    return { kind: letter === "M" ? "import" : "export", companyId: Number(companyId), id: Number(id) };
  },
  /** The company's imports that have begun but are neither completed nor removed. */
  openImports: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#MO` }),
  openImport: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#MO`, sk: `M#${padded(id)}` }),

  /** The imported addresses of one block of 128 ids, packed into one row. An address that changes later gets a separate row. */
  addressPack: (companyId: number, blockNumber: number): Key => ({
    pk: addressPartition(companyId, blockNumber),
    sk: "PACK",
  }),
  address: (companyId: number, id: number): Key => ({
    pk: addressPartition(companyId, blockOf(id)),
    sk: `A#${padded(id)}`,
  }),

  /** All territories of the company, sorted by creation time. */
  territories: (companyId: number): { pk: string; begins: string } => ({
    pk: territoryPartition(companyId),
    begins: "T#",
  }),
  territory: (companyId: number, createdAt: string, id: number): Key => ({
    pk: territoryPartition(companyId),
    sk: `T#${createdAt}#${padded(id)}`,
  }),
  /** The number of the company's territories and the total size of their polygons. Writes check both limits with conditions on this row. */
  territoryCount: (companyId: number): Key => ({ pk: territoryPartition(companyId), sk: "COUNT" }),
  /** The creation time of a territory, which is part of the key of the territory's row. */
  territoryLocator: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#I#${id}`, sk: "TERRITORY" }),
  /** A deleted territory. Lists do not read this partition. */
  deletedTerritory: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#TD`, sk: `T#${padded(id)}` }),

  /**
   * The unflushed entries and the head of the company index, which one Query reads. The head sorts last. So if a flush moves entries during
   * the Query, the Query reads a head that already lists their new segments.
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
  /** The long text of an unflushed index entry, under the sort key of the entry. */
  deltaText: (companyId: number, sk: string): Key => ({ pk: `C#${companyId}#XN`, sk }),
  deltaTexts: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XN` }),
  /** The run manifests of the company index. Each lists the segments of one run. */
  runManifests: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XM` }),
  runManifest: (companyId: number, runId: string): Key => ({ pk: `C#${companyId}#XM`, sk: runId }),
  /** One part of the binary data of a segment or run of the company index. */
  indexPart: (companyId: number, owner: string, piece: string, part: number): Key => ({
    pk: `C#${companyId}#XS#${owner}`,
    sk: `${piece}#${part}`,
  }),
  /** All binary data of a segment or run. */
  indexParts: (companyId: number, owner: string): { pk: string } => ({ pk: `C#${companyId}#XS#${owner}` }),

  /** All webhooks of the company with their registrations. */
  webhooks: (companyId: number): { pk: string } => ({ pk: webhookPartition(companyId) }),
  /** The number of the company's webhooks. Writes check the limit with a condition on this row. */
  webhookCount: (companyId: number): Key => ({ pk: webhookPartition(companyId), sk: "COUNT" }),
  webhook: (companyId: number, id: number): Key => ({ pk: webhookPartition(companyId), sk: `W#${padded(id)}` }),
  /** The webhook of a row. */
  webhookAt: ({ pk, sk }: Key): { companyId: number; id: number } | undefined => {
    const [, companyId] = /^C#(\d+)#W$/.exec(pk) ?? [];
    const [, id] = /^W#(\d+)$/.exec(sk) ?? [];
    return companyId === undefined || id === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
  registration: (companyId: number, webhookId: number, id: number): Key => ({
    pk: webhookPartition(companyId),
    sk: `W#${padded(webhookId)}#R#${padded(id)}`,
  }),

  /** A delivery. Its sort key is a prefix of the sort keys of its attempts. Delivery ids sort by time. */
  delivery: (companyId: number, webhookId: number, id: string): Key => ({
    pk: deliveryPartition(companyId, webhookId, shardOf(id)),
    sk: `D#${id}`,
  }),
  /** One of the webhook's partitions of deliveries, sorted by time. */
  deliveryShard: (companyId: number, webhookId: number, shard: number): { pk: string } => ({
    pk: deliveryPartition(companyId, webhookId, shard),
  }),
  /** The deliveries of one partition that are older than this one, or all of them if the id is undefined. */
  deliveriesBefore: (id: string | undefined) => ({ from: "D#", upTo: `D#${id ?? "~"}` }),
  attempt: (companyId: number, webhookId: number, deliveryId: string, number: number): Key => ({
    pk: deliveryPartition(companyId, webhookId, shardOf(deliveryId)),
    sk: `D#${deliveryId}#T#${String(number).padStart(4, "0")}`,
  }),

  /** The partition of the due index for a waiting delivery. */
  dueShard: (deliveryId: string): string => `DUE#${hash(deliveryId) % DUE_SHARDS}`,
  /** The partition of the due index for imports and exports that the sweep may have to continue or clean up. */
  jobShard: "DUE#JOBS",
  /** The partition of the due index for the deliveries of a paused webhook, sorted by time. */
  pausedBacklogShard: (companyId: number, webhookId: number): string => `DUE#HELD#${companyId}#${webhookId}`,
  /**
   * The partition of the due index for throttled deliveries of a webhook: the limiter had no free slot, or the circuit breaker was open.
   */
  throttledBacklogShard: (companyId: number, webhookId: number): string => `DUE#GATED#${companyId}#${webhookId}`,
  /** The partition of the due index for the rows of paused webhooks. */
  pausedWebhooksShard: (): string => "DUE#PAUSED",
  dueShards: (): string[] => Array.from({ length: DUE_SHARDS }, (_, shard) => `DUE#${shard}`),
} as const;

export function shardOf(name: string): number {
  return hash(name) % DELIVERY_SHARDS;
}

/** The FNV-1a hash, only for spreading keys over partitions. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/** The sparse secondary index of waiting deliveries, sorted by due time. */
export const DUE_INDEX = { name: "due", partitionKey: "dueShard", sortKey: "dueAt" } as const;

const partitionOf = (companyId: number, prospectId: number): string =>
  keys.prospectBlock(companyId, blockOf(prospectId)).pk;
const locatorPartition = (companyId: number, id: number): string => `C#${companyId}#I#${id}`;
const calendarPartition = (companyId: number, month: string): string => `C#${companyId}#K#${month}`;
const agendaPartition = (companyId: number, assignee: number | null): string => `C#${companyId}#KA#${assignee ?? 0}`;

/**
 * Keys of the rows that belong to prospects: notes, past status changes, appointments, and the rows that find them. Notes, status changes
 * and appointments are in the partition of their prospect. Their sort keys have other prefixes, so that reads of prospects skip them.
 */
export const attachedKeys = {
  /** The prospects of one block of 128 ids with all their notes. */
  prospectsAndNotes: (companyId: number, blockNumber: number) => ({
    pk: keys.prospectBlock(companyId, blockNumber).pk,
    from: "N#",
    upTo: "P#~",
  }),
  /** The prospects of one block of 128 ids with the counts of their notes. */
  prospectsAndCounts: (companyId: number, blockNumber: number) => ({
    pk: keys.prospectBlock(companyId, blockNumber).pk,
    from: "NC#",
    upTo: "P#~",
  }),
  /** The notes of one prospect are sorted by creation time. */
  note: (companyId: number, prospectId: number, createdAt: string, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `N#${padded(prospectId)}#${createdAt}#${padded(id)}`,
  }),
  /** The notes of the prospects from `first` to `last`, both included. Both prospects must be in the same block of 128 ids. */
  notes: (companyId: number, first: number, last = first) => ({
    pk: partitionOf(companyId, first),
    from: `N#${padded(first)}`,
    // `$` sorts directly after `#`, so the range includes all notes of the last prospect.
    upTo: `N#${padded(last)}$`,
  }),
  /** The number of notes of the prospect. A note from its import is not counted. */
  noteCount: (companyId: number, prospectId: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `NC#${padded(prospectId)}`,
  }),
  /** All appointments and all past status changes of the prospect. */
  details: (companyId: number, prospectId: number): { pk: string; begins: string } => ({
    pk: partitionOf(companyId, prospectId),
    begins: `D#${padded(prospectId)}#`,
  }),
  appointments: (companyId: number, prospectId: number): { pk: string; begins: string } => ({
    pk: partitionOf(companyId, prospectId),
    begins: `D#${padded(prospectId)}#A#`,
  }),
  appointment: (companyId: number, prospectId: number, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `D#${padded(prospectId)}#A#${padded(id)}`,
  }),
  /** A past status change. `version` is the version of the prospect after the change. */
  history: (companyId: number, prospectId: number, version: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `D#${padded(prospectId)}#H#${padded(version)}`,
  }),
  /** A deleted appointment. Reads of the prospect's appointments skip its prefix. */
  deletedAppointment: (companyId: number, prospectId: number, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `X#${padded(prospectId)}#A#${padded(id)}`,
  }),
  /** The prospect of a note or appointment. Each locator has a separate partition, to avoid a hot partition. */
  noteLocator: (companyId: number, id: number): Key => ({ pk: locatorPartition(companyId, id), sk: "NOTE" }),
  appointmentLocator: (companyId: number, id: number): Key => ({
    pk: locatorPartition(companyId, id),
    sk: "APPOINTMENT",
  }),
  /** The company's appointments that start in a month (`YYYY-MM`, UTC), between two times, both included. */
  calendar: (companyId: number, month: string, from: string, to: string) => ({
    pk: calendarPartition(companyId, month),
    from,
    // `$` sorts directly after `#`, so the range includes appointments that start at the last instant.
    upTo: `${to}$`,
  }),
  calendarEntry: (companyId: number, startAt: string, id: number): Key => ({
    pk: calendarPartition(companyId, startAt.slice(0, 7)),
    sk: `${startAt}#${padded(id)}`,
  }),
  /**
   * The times of a prospect's appointments, in the partition of the user to whom the prospect is assigned. No appointment starts after
   * `until`.
   */
  agenda: (companyId: number, assignee: number | null, until: string, prospectId: number): Key => ({
    pk: agendaPartition(companyId, assignee),
    sk: `${until}#${padded(prospectId)}`,
  }),
  /** The agendas of a user's prospects that may have appointments at this time or later. */
  agendas: (companyId: number, userId: number, from: string) => ({
    pk: agendaPartition(companyId, userId),
    from,
    upTo: "~",
  }),

  /** The locators of all imported notes in one block of 128 ids. */
  noteLocators: (companyId: number, blockNumber: number): Key => ({
    pk: `C#${companyId}#I#B${blockNumber}`,
    sk: "NOTES",
  }),
} as const;

/**
 * Patterns of partition keys. The IAM policy of a function allows only the patterns that the function needs, by the condition key
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
