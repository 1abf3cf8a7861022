/** Exports all data of a company to the bucket: its rows as NDJSON, and copies of its files. A repeated command continues. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import * as z from "zod/mini";
import { copyFile, type FileStore, filesAt, readFile, removeFiles, writeFile } from "#shared/aws/s3-folders.ts";
import { type Clock, iso } from "#shared/clock.ts";
import { unloggedFacts } from "#shared/company-index/activity/read.ts";
import { readableActivity } from "#shared/company-index/repair/activity.ts";
import type { Item } from "#shared/db/expression.ts";
import { isPacked, unpacked } from "#shared/db/packed.ts";
import { COMPANY_EXPORTS } from "#shared/jobs/s3-keys.ts";
import { folderNames } from "../../routes/route.ts";
import { messageOf } from "../command/error.ts";
import { companyPages, type RowStore, SEGMENTS, typeOf } from "./rows.ts";
import { known } from "./suspension.ts";

interface ExportContext {
  readonly rows: RowStore;
  readonly files: FileStore;
  readonly clock: Clock;
  readonly progress?: (line: string) => void;
  /** Target bytes of an exported part before compression, checked after each page of rows, so a part can be larger. Default: 8 MiB. */
  readonly partBytes?: number;
}

const PART_BYTES = 8 * 2 ** 20;

const filePrefixes = (companyId: number): string[] => folderNames.map((folder) => `${folder}/${companyId}/`);
const exportsPrefix = (companyId: number): string => `${COMPANY_EXPORTS}/${companyId}/`;

export const allPrefixes = (companyId: number): string[] => [...filePrefixes(companyId), exportsPrefix(companyId)];

const Position = z.looseObject({ pk: z.string(), sk: z.string() });
const Part = z.object({ key: z.string(), lines: z.int(), bytes: z.int(), sha256: z.string() });
const Counts = z.record(z.string(), z.int());

/** The state of an unfinished export. It is stored in the bucket after each part. */
const Progress = z.object({
  format: z.literal(1),
  id: z.string(),
  startedAt: z.string(),
  name: z.string(),
  suspended: z.boolean(),
  segments: z.int(),
  segment: z.int(),
  from: z.nullable(Position),
  hasActivity: z._default(z.boolean(), false),
  /** The index in `filePrefixes` of the folder that is being copied. */
  folder: z.int(),
  /** The S3 key of the last copied file of this folder. Null before the first one. */
  after: z.nullable(z.string()),
  parts: z.array(Part),
  counts: Counts,
  leftOut: Counts,
  damaged: z._default(z.int(), 0),
});
type Progress = z.infer<typeof Progress>;

export interface Manifest extends Omit<Progress, "segments" | "segment" | "from" | "hasActivity" | "folder" | "after"> {
  readonly companyId: number;
  readonly endedAt: string;
  readonly notes: readonly string[];
}

export const progressKey = (companyId: number): string => `${exportsPrefix(companyId)}progress.json`;

export async function exportCompany(
  context: ExportContext,
  companyId: number,
): Promise<{ folder: string; manifest: Manifest }> {
  return new CompanyExport(context, companyId, await begin(context, companyId)).run();
}

const notes = [
  "Each line of a part is one row. `type` names its kind. A line of the type `file` names a copied file.",
  "Left out: the search index, which is derived from the rows (its newest activity is exported as the type `loggedFacts`); answers kept for repeated requests; keys and secrets of webhooks.",
  "`damaged` is the number of rows with compressed bytes that cannot be decompressed. Such bytes are exported in base64.",
  "If `suspended` is false, users may have changed rows while the export ran.",
] as const;

async function begin({ rows, files, clock }: ExportContext, companyId: number): Promise<Progress> {
  const stored = await readFile(files, progressKey(companyId));
  if (stored !== undefined) return Progress.parse(JSON.parse(stored));
  const company = await known(rows.table, companyId);
  const startedAt = iso(clock.now());
  return Progress.parse({
    ...{ format: 1, id: startedAt.replaceAll(/[:.]/g, "-"), startedAt, name: company.name },
    ...{ suspended: company.suspendedAt !== undefined, segments: SEGMENTS, segment: 0, from: null },
    ...{ folder: 0, after: null, parts: [], counts: {}, leftOut: {} },
  });
}

class CompanyExport {
  readonly #context: ExportContext;
  readonly #companyId: number;
  readonly #folder: string;
  readonly #progress: Progress;

  constructor(context: ExportContext, companyId: number, progress: Progress) {
    this.#context = context;
    this.#companyId = companyId;
    this.#folder = `${exportsPrefix(companyId)}${progress.id}/`;
    this.#progress = progress;
  }

  async run(): Promise<{ folder: string; manifest: Manifest }> {
    const [progress, folder, companyId] = [this.#progress, this.#folder, this.#companyId];
    const { files, clock } = this.#context;
    while (progress.segment < progress.segments) await this.#exportSegment();
    if (!progress.hasActivity) await this.#exportActivity();
    for (const prefix of filePrefixes(companyId).slice(progress.folder)) await this.#copyFolder(prefix);
    const { segments, segment, from, hasActivity, folder: _, after, ...rest } = progress;
    const manifest: Manifest = { companyId, ...rest, endedAt: iso(clock.now()), notes };
    await writeFile(files, `${folder}manifest.json`, JSON.stringify(manifest, null, 1), "application/json");
    await removeFiles(files, [progressKey(companyId)]);
    return { folder, manifest };
  }

  async #exportSegment(): Promise<void> {
    const progress = this.#progress;
    const { rows: store, partBytes = PART_BYTES } = this.#context;
    const { segment, segments, from } = progress;
    const scan = { segment, segments, from: from ?? undefined };
    let lines: string[] = [];
    for await (const { rows, next } of companyPages(store, this.#companyId, scan)) {
      for (const row of rows) {
        const counts = isLeftOut(row) ? progress.leftOut : progress.counts;
        counts[typeOf(row)] = (counts[typeOf(row)] ?? 0) + 1;
        if (!isLeftOut(row)) lines.push(this.#lineOf(row));
      }
      const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
      if (next !== undefined && bytes < partBytes) continue;
      await this.#addPart("rows", lines);
      lines = [];
      progress.from = next === undefined ? null : z.parse(Position, next);
      if (next === undefined) progress.segment++;
      await this.#save();
    }
  }

  /** Exports the facts that no flush has stored as rows yet. They are only in the company index, and the export leaves out the index. */
  async #exportActivity(): Promise<void> {
    const { counts } = this.#progress;
    const facts = await unloggedFacts(this.#context.rows.table, this.#companyId);
    const lines = facts.map(({ put }) => this.#lineOf(put));
    await this.#addPart("rows", lines);
    counts.loggedFacts = (counts.loggedFacts ?? 0) + lines.length;
    this.#progress.hasActivity = true;
    await this.#save();
  }

  async #copyFolder(prefix: string): Promise<void> {
    const progress = this.#progress;
    const { files } = this.#context;
    for await (const page of filesAt(files, prefix, progress.after ?? undefined)) {
      const lines: string[] = [];
      for (const { key, bytes, etag } of page) {
        const copy = `${this.#folder}files/${key}`;
        await copyFile(files, key, copy);
        lines.push(JSON.stringify({ type: "file", key, copy, bytes, etag }));
      }
      await this.#addPart("files", lines);
      progress.counts.file = (progress.counts.file ?? 0) + page.length;
      progress.after = page.at(-1)?.key ?? null;
      await this.#save();
    }
    progress.folder++;
    progress.after = null;
    await this.#save();
  }

  /** A part's S3 key has the number of recorded parts plus one, so a repeated command overwrites a part that was not recorded. */
  async #addPart(kind: "rows" | "files", lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    const { parts } = this.#progress;
    const body = gzipSync(`${lines.join("\n")}\n`);
    const key = `${this.#folder}${kind}-${String(parts.length + 1).padStart(5, "0")}.ndjson.gz`;
    await writeFile(this.#context.files, key, body, "application/gzip");
    this.#context.progress?.(`${key}: ${lines.length} lines`);
    const sha256 = createHash("sha256").update(body).digest("hex");
    parts.push({ key, lines: lines.length, bytes: body.length, sha256 });
  }

  #save(): Promise<void> {
    const text = JSON.stringify(this.#progress);
    return writeFile(this.#context.files, progressKey(this.#companyId), text, "application/json");
  }

  /** Returns the line of a row in the export. Counts and reports the row if its compressed bytes are damaged. */
  #lineOf(row: Item): string {
    const reasons: string[] = [];
    const line = JSON.stringify(exportable(row), (_, value: unknown) => plain(value, (reason) => reasons.push(reason)));
    if (reasons.length > 0) {
      this.#progress.damaged++;
      const what = `${row.pk} ${row.sk}: damaged compressed bytes, exported in base64 (${reasons.join("; ")})`;
      this.#context.progress?.(what);
    }
    return line;
  }
}

/**
 * Partition keys of rows that are not exported: the company index with its change log, stored responses and receipts of repeated requests
 * and operations, ids that clients chose for new prospects (the prospects' rows contain them too), and data keys.
 */
const LEFT_OUT = /^C#\d+#(?:X|XN|XF|XL|XM|XS#.*|IK#.*|OP#.*|CR#.*|WK|SK|CK)$/;
const isLeftOut = ({ pk }: Item): boolean => LEFT_OUT.test(String(pk));

const secretFields: ReadonlySet<string> = new Set(["secretKey", "sealedSecret", "previousSecret", "writeId"]);

/** Returns the row without secrets. The JSON string with the fields of a prospect is replaced by the fields. */
function exportable(row: Item): Item {
  const { fields, ...columns } = row;
  const activity = readableActivity(row);
  if (activity !== undefined) return activity;
  const all =
    typeof fields === "string" && columns.type === "prospect"
      ? { ...columns, ...z.parse(Fields, JSON.parse(fields)) }
      : row;
  return Object.fromEntries(Object.entries(all).filter(([name]) => !secretFields.has(name)));
}

const Fields = z.record(z.string(), z.unknown());

/** Returns the value in a form for JSON. Compressed bytes are decompressed. Damaged compressed bytes and other bytes become base64. */
function plain(value: unknown, onDamage: (reason: string) => void): unknown {
  if (value instanceof Set) return [...value];
  if (!(value instanceof Uint8Array)) return value;
  if (isPacked(value)) {
    try {
      return unpacked(z.unknown(), value);
    } catch (error) {
      onDamage(messageOf(error));
    }
  }
  return Buffer.from(value).toString("base64");
}
