/** The keys of the table: one function for each question that the table answers. The keys of webhook delivery are in webhook-keys.ts. */

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** The number of ids in one block. The records of a block share a partition, which stays small enough not to become a hot partition. */
export const IDS_PER_PARTITION = 128;

/** The number of delivery partitions of a webhook. Several partitions spread the load of one busy webhook. */
export const DELIVERY_SHARDS = 8;

/** The number of partitions of the due index. They spread the write load of all waiting deliveries. */
export const DUE_SHARDS = 8;

/** The id as text that sorts like the number, with 16 digits because 2^53 has 16. */
export const padded = (id: number): string => String(id).padStart(16, "0");

/** The number of the block that contains this id. Each block has its own partition. */
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
  /** The one global counter from which id blocks are leased. */
  idCounter: (): Key => ({ pk: "IDS", sk: "IDS" }),

  /** Which company and user does this token subject belong to? */
  identity: (sub: string): Key => ({ pk: `S#${sub}`, sk: "IDENTITY" }),
  /** Which user has this e-mail address (in lower case)? An address belongs to at most one user of the whole service. */
  email: (email: string): Key => ({ pk: `E#${email}`, sk: "EMAIL" }),
  /** Which user of this company has this e-mail address? A user of another company may sign in with the same address. */
  companyEmail: (companyId: number, email: string): Key => ({ pk: `E#${email}`, sk: `COMPANY#${companyId}` }),
  /** How much of a daily quota has the company used? The day is `YYYY-MM-DD`, UTC. */
  quota: (companyId: number, name: "INVITATIONS", day: string): Key => ({
    pk: `C#${companyId}#Q`,
    sk: `${name}#${day}`,
  }),

  /** The company's settings, users, statuses and tags. One Query reads all of these rows. */
  reference: (companyId: number): { pk: string } => ({ pk: reference(companyId) }),
  company: (companyId: number): Key => ({ pk: reference(companyId), sk: "COMPANY" }),
  user: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `USER#${padded(id)}` }),
  status: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `STATUS#${padded(id)}` }),
  tag: (companyId: number, id: number): Key => ({ pk: reference(companyId), sk: `TAG#${padded(id)}` }),
  /** Does a status or tag of the company already have this case-folded display value? */
  uniqueValue: (companyId: number, kind: "STATUS" | "TAG", value: string): Key => ({
    pk: reference(companyId),
    sk: `UNIQUE#${kind}#${value}`,
  }),

  /** Which id ranges has the company leased for its prospects? The ranges cover every partition of prospects. */
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
  /** The prospects of one id block whose ids lie between `first` and `last`. */
  prospectSpan: (companyId: number, first: number, last: number) => ({
    pk: prospectPartition(companyId, blockOf(first)),
    from: `P#${padded(first)}`,
    upTo: `P#${padded(last)}`,
  }),

  /** What was the answer to the user's request with this idempotency key? */
  idempotency: (companyId: number, userId: number, digest: string): Key => ({
    pk: `C#${companyId}#IK#${userId}`,
    sk: `I#${digest}`,
  }),

  /** Which id ranges has the company leased for its addresses? The ranges cover every partition of addresses. */
  addressRanges: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#AR` }),
  addressRange: (companyId: number, from: number): Key => ({ pk: `C#${companyId}#AR`, sk: `R#${padded(from)}` }),
  /** All addresses of one block of 128 ids, sorted by id. */
  addressBlock: (companyId: number, blockNumber: number): { pk: string } => ({
    pk: addressPartition(companyId, blockNumber),
  }),

  /** What is the state of an import? */
  import: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#M#${id}`, sk: "IMPORT" }),
  /** Which imports does the company have? */
  importList: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#ML` }),
  importEntry: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#ML`, sk: `M#${padded(id)}` }),
  /** The imports older than this one; the whole list if the id is `undefined`. */
  importsBefore: (id: number | undefined) => ({ from: "M#", upTo: `M#${id === undefined ? "~" : padded(id - 1)}` }),
  /** What is the state of an export? */
  export: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#E#${id}`, sk: "EXPORT" }),
  /** Which import or export has this key? */
  jobAt: ({ pk }: Key): { kind: "import" | "export"; companyId: number; id: number } | undefined => {
    const [, companyId, letter, id] = /^C#(\d+)#([ME])#(\d+)$/.exec(pk) ?? [];
    if (letter === undefined) return undefined;
    return { kind: letter === "M" ? "import" : "export", companyId: Number(companyId), id: Number(id) };
  },
  /** Which imports of a company have begun but are neither completed nor removed? */
  openImports: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#MO` }),
  openImport: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#MO`, sk: `M#${padded(id)}` }),

  /** The addresses of an import in one block of 128 ids, packed into one row. Addresses with separate rows are left out. */
  addressPack: (companyId: number, blockNumber: number): Key => ({
    pk: addressPartition(companyId, blockNumber),
    sk: "PACK",
  }),
  address: (companyId: number, id: number): Key => ({
    pk: addressPartition(companyId, blockOf(id)),
    sk: `A#${padded(id)}`,
  }),

  /** All territories of a company, sorted by creation time. */
  territories: (companyId: number): { pk: string; begins: string } => ({
    pk: territoryPartition(companyId),
    begins: "T#",
  }),
  territory: (companyId: number, createdAt: string, id: number): Key => ({
    pk: territoryPartition(companyId),
    sk: `T#${createdAt}#${padded(id)}`,
  }),
  /** How many territories does the company have, and how large are their polygons? The conditions of both limits check this row. */
  territoryCount: (companyId: number): Key => ({ pk: territoryPartition(companyId), sk: "COUNT" }),
  /** What is the creation time of the territory with this id? The creation time is part of the key of the territory's row. */
  territoryLocator: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#I#${id}`, sk: "TERRITORY" }),
  /** A deleted territory. Its key is outside the range of every list. */
  deletedTerritory: (companyId: number, id: number): Key => ({ pk: `C#${companyId}#TD`, sk: `T#${padded(id)}` }),

  /**
   * Which entries has the company's index got since its last flush, and which segments does its head list? One Query reads both. The head
   * sorts last, so a flush during the Query loses no entry: the head that the Query reads then lists the flushed segments.
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
  /** The long text of an index entry that is not flushed yet. It has the same sort key as the entry. */
  deltaText: (companyId: number, sk: string): Key => ({ pk: `C#${companyId}#XN`, sk }),
  deltaTexts: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XN` }),
  /** Which segments make up the runs of the company's index? Each run has one row. */
  runManifests: (companyId: number): { pk: string } => ({ pk: `C#${companyId}#XM` }),
  runManifest: (companyId: number, runId: string): Key => ({ pk: `C#${companyId}#XM`, sk: runId }),
  /** One part of a piece of the index. A piece is a column group of a segment, or other data of a run. */
  indexPart: (companyId: number, owner: string, piece: string, part: number): Key => ({
    pk: `C#${companyId}#XS#${owner}`,
    sk: `${piece}#${part}`,
  }),
  /** All parts of the pieces of a segment or run. */
  indexParts: (companyId: number, owner: string): { pk: string } => ({ pk: `C#${companyId}#XS#${owner}` }),

  /** All webhooks of a company with their registrations, in one Query. */
  webhooks: (companyId: number): { pk: string } => ({ pk: webhookPartition(companyId) }),
  /** How many webhooks does the company have? The condition of their limit checks this row. */
  webhookCount: (companyId: number): Key => ({ pk: webhookPartition(companyId), sk: "COUNT" }),
  webhook: (companyId: number, id: number): Key => ({ pk: webhookPartition(companyId), sk: `W#${padded(id)}` }),
  /** Which webhook has this key? */
  webhookAt: ({ pk, sk }: Key): { companyId: number; id: number } | undefined => {
    const [, companyId] = /^C#(\d+)#W$/.exec(pk) ?? [];
    const [, id] = /^W#(\d+)$/.exec(sk) ?? [];
    return companyId === undefined || id === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
  registration: (companyId: number, webhookId: number, id: number): Key => ({
    pk: webhookPartition(companyId),
    sk: `W#${padded(webhookId)}#R#${padded(id)}`,
  }),

  /** A delivery. A Query with `begins_with(sk, delivery.sk)` also reads the delivery's attempts. Delivery ids sort by time. */
  delivery: (companyId: number, webhookId: number, id: string): Key => ({
    pk: deliveryPartition(companyId, webhookId, shardOf(id)),
    sk: `D#${id}`,
  }),
  /** One of the partitions that hold a webhook's deliveries, sorted by time. */
  deliveryShard: (companyId: number, webhookId: number, shard: number): { pk: string } => ({
    pk: deliveryPartition(companyId, webhookId, shard),
  }),
  /** The deliveries of such a partition that are older than this one; all of them if the id is `undefined`. */
  deliveriesBefore: (id: string | undefined) => ({ from: "D#", upTo: `D#${id ?? "~"}` }),
  attempt: (companyId: number, webhookId: number, deliveryId: string, number: number): Key => ({
    pk: deliveryPartition(companyId, webhookId, shardOf(deliveryId)),
    sk: `D#${deliveryId}#T#${String(number).padStart(4, "0")}`,
  }),

  /** The partition of the due index for a waiting delivery. */
  dueShard: (deliveryId: string): string => `DUE#${hash(deliveryId) % DUE_SHARDS}`,
  /** The partition of the due index for imports and exports that the sweep may have to continue or clean up. */
  jobShard: "DUE#JOBS",
  /** The partition of the due index for the paused backlog of a webhook, sorted by time. */
  pausedBacklogShard: (companyId: number, webhookId: number): string => `DUE#HELD#${companyId}#${webhookId}`,
  /**
   * The partition of the due index for the throttled backlog of a webhook, which holds deliveries that found no free slot in the limiter or
   * an open breaker.
   */
  throttledBacklogShard: (companyId: number, webhookId: number): string => `DUE#GATED#${companyId}#${webhookId}`,
  /** The partition of the due index for the rows of paused webhooks. */
  pausedWebhooksShard: (): string => "DUE#PAUSED",
  dueShards: (): string[] => Array.from({ length: DUE_SHARDS }, (_, shard) => `DUE#${shard}`),
} as const;

/** The number of the shard that belongs to this name. */
export function shardOf(name: string): number {
  return hash(name) % DELIVERY_SHARDS;
}

/** The FNV-1a hash over UTF-16 units. It is used only to spread deliveries over shards. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/** The sparse index of waiting deliveries, sorted by due time. */
export const DUE_INDEX = { name: "due", partitionKey: "dueShard", sortKey: "dueAt" } as const;

const partitionOf = (companyId: number, prospectId: number): string =>
  keys.prospectBlock(companyId, blockOf(prospectId)).pk;
const locatorPartition = (companyId: number, id: number): string => `C#${companyId}#I#${id}`;
const calendarPartition = (companyId: number, month: string): string => `C#${companyId}#K#${month}`;
const agendaPartition = (companyId: number, assignee: number | null): string => `C#${companyId}#KA#${assignee ?? 0}`;

/**
 * Keys of the rows attached to prospects (notes, past statuses, appointments) and of the rows that find them (locators, the calendar,
 * agendas). Attached rows share the partition of their prospect but have other prefixes, so a read of prospects skips them.
 */
export const attachedKeys = {
  /** The prospects of one block of 128 ids with all their notes, and no other rows. */
  prospectsAndNotes: (companyId: number, blockNumber: number) => ({
    pk: keys.prospectBlock(companyId, blockNumber).pk,
    from: "N#",
    upTo: "P#~",
  }),
  /** The prospects of one block of 128 ids with the counts of their notes, but without the notes. */
  prospectsAndCounts: (companyId: number, blockNumber: number) => ({
    pk: keys.prospectBlock(companyId, blockNumber).pk,
    from: "NC#",
    upTo: "P#~",
  }),
  /** A note. The notes of one prospect are sorted by creation time. */
  note: (companyId: number, prospectId: number, createdAt: string, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `N#${padded(prospectId)}#${createdAt}#${padded(id)}`,
  }),
  /** The notes of the prospects of one id block whose ids lie between `first` and `last`, both included. */
  notes: (companyId: number, first: number, last = first) => ({
    pk: partitionOf(companyId, first),
    from: `N#${padded(first)}`,
    // `$` sorts directly after `#`, so the range includes all notes of the last prospect.
    upTo: `N#${padded(last)}$`,
  }),
  /** How many notes does the prospect have, not counting the note from its import? */
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
  /** A past status change. `version` is the version of the prospect that the change wrote. */
  history: (companyId: number, prospectId: number, version: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `D#${padded(prospectId)}#H#${padded(version)}`,
  }),
  /** A deleted appointment. Its key is outside the range of every read of the prospect. */
  deletedAppointment: (companyId: number, prospectId: number, id: number): Key => ({
    pk: partitionOf(companyId, prospectId),
    sk: `X#${padded(prospectId)}#A#${padded(id)}`,
  }),
  /** Which prospect has the note or appointment with this id? Each locator has a separate partition, so none of them becomes hot. */
  noteLocator: (companyId: number, id: number): Key => ({ pk: locatorPartition(companyId, id), sk: "NOTE" }),
  appointmentLocator: (companyId: number, id: number): Key => ({
    pk: locatorPartition(companyId, id),
    sk: "APPOINTMENT",
  }),
  /** Which appointments of a company start in this month (`YYYY-MM`, UTC), between the two instants, both included? */
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
   * When are the appointments of a prospect? One row, in the partition of the user to whom the prospect is assigned. No appointment starts
   * after `until`.
   */
  agenda: (companyId: number, assignee: number | null, until: string, prospectId: number): Key => ({
    pk: agendaPartition(companyId, assignee),
    sk: `${until}#${padded(prospectId)}`,
  }),
  /** The agenda rows of a user's prospects that may have appointments at this instant or later. */
  agendas: (companyId: number, userId: number, from: string) => ({
    pk: agendaPartition(companyId, userId),
    from,
    upTo: "~",
  }),

  /** Which prospects have the notes that an import created with the ids of one block? */
  noteLocators: (companyId: number, blockNumber: number): Key => ({
    pk: `C#${companyId}#I#B${blockNumber}`,
    sk: "NOTES",
  }),
} as const;

/**
 * Patterns of partition keys, by key family. A function's policy allows only the families that the function uses, through the condition key
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
