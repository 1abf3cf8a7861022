/** Finds or begins the import of a file: whatever happened before, no content is imported twice unless somebody asks for it. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { Import } from "../../../docs/client/api.ts";
import { Failed, messageOf } from "./fault.ts";
import type { ImportOptions } from "./options.ts";
import { type KeptImport, KeptImports } from "./resume-journal.ts";
import { answered, problemText, type Service } from "./service.ts";

export interface Content {
  readonly bytes: number;
  /** In base64. */
  readonly sha256: string;
}

/** An import that the command sends its file to, follows, or only tells of. */
export interface Begun {
  readonly found: Import;
  /** It was there before. */
  readonly isOld: boolean;
  /** The bucket is known to have the file. */
  readonly uploaded: boolean;
  /** To be told of each change. */
  keep(state: { readonly uploaded: boolean; readonly state: string }): Promise<void>;
}

/** Throws Failed where it cannot be read. */
export async function contentOf(file: string): Promise<Content> {
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    const isFile = (await stat(file)).isFile();
    if (!isFile) throw new Error(`${file} is no regular file, and it has to be read more than once`);
    for await (const chunk of createReadStream(file)) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  } catch (error) {
    throw new Failed(messageOf(error));
  }
  if (bytes === 0) throw new Failed(`${file} is empty`);
  return { bytes, sha256: hash.digest("base64") };
}

/** A dry run makes nothing: it is never gone on with, and nothing is kept of it. */
export async function beginDryRun(service: Service, options: ImportOptions, content: Content): Promise<Begun> {
  const { made } = await create(service, options, content, randomUUID());
  return { found: made, isOld: false, uploaded: false, keep: async () => undefined };
}

export async function beginImport(service: Service, options: ImportOptions, content: Content): Promise<Begun> {
  const kept = await KeptImports.open(options.file);
  const { base, companyId } = service;
  const mapping = JSON.stringify(options.mapping ?? null);
  const here = kept.all.filter((one) => one.base === base && one.companyId === companyId);
  for (const other of here) if (other.sha256 !== content.sha256) await settle(service, kept, other, options.again);
  const known = here.findLast((one) => one.sha256 === content.sha256);
  for (let attempt = known?.attempt ?? 0; ; attempt++) {
    const old = known?.attempt === attempt ? await lookUp(service, kept, known) : undefined;
    const { made, isReplayed } = old
      ? { made: old, isReplayed: true }
      : await create(service, options, content, keyOf(content, mapping, attempt));
    const found = old ?? (isReplayed ? await importNow(service, made.id) : made);
    const uploaded = old !== undefined && known?.uploaded === true;
    const isSameMapping = old === undefined || known?.mapping === mapping;
    const record = {
      base,
      companyId,
      sha256: content.sha256,
      mapping,
      attempt,
      id: found.id,
      createdAt: found.createdAt,
    };
    const keep: Begun["keep"] = (state) => kept.keep({ ...record, ...state });
    if (await isToBeUsed(service, found, { uploaded, isSameMapping, again: options.again })) {
      await keep({ uploaded, state: found.state });
      return { found, isOld: isReplayed, uploaded, keep };
    }
  }
}

interface Circumstances {
  readonly uploaded: boolean;
  readonly isSameMapping: boolean;
  readonly again: boolean;
}

/** False: nothing came or will come of it, or another one was asked for. */
async function isToBeUsed(
  service: Service,
  found: Import,
  { uploaded, isSameMapping, again }: Circumstances,
): Promise<boolean> {
  if (found.state === "failed" || found.state === "cancelled") return false;
  if (found.state === "completed") return !again;
  if (found.state === "awaiting_upload" && !(uploaded || (isSameMapping && found.upload !== null))) {
    return !(await cancel(service, found.id));
  }
  if (isSameMapping) return true;
  throw new Failed(`import ${found.id} of this file runs with another mapping: cancel it, or wait for it`);
}

/** An earlier content of the same file: most of its rows are likely to be in the new one, too. */
async function settle(service: Service, kept: KeptImports, other: KeptImport, again: boolean): Promise<void> {
  if (other.state !== "awaiting_upload" && other.state !== "running") return;
  const found = await lookUp(service, kept, other);
  if (found === undefined) return;
  const isCancelled = found.state === "awaiting_upload" && !other.uploaded && (await cancel(service, found.id));
  const { state } = isCancelled ? { state: "cancelled" } : found;
  await kept.keep({ ...other, state });
  if (again || state === "completed" || state === "failed" || state === "cancelled") return;
  throw new Failed(
    `import ${found.id} of what this file held before is still at work: wait for it or cancel it, or say --again to import both`,
  );
}

/** Undefined where the service does not know it: it was begun anew, and has other records under these ids. */
async function lookUp(service: Service, kept: KeptImports, one: KeptImport): Promise<Import | undefined> {
  const found = await answered(service, async () => {
    const answer = await service.client.GET("/api/prospects/imports/{id}", { params: { path: { id: one.id } } });
    return answer.response.status === 404 ? { data: null, response: answer.response } : answer;
  });
  if (found?.createdAt === one.createdAt) return found;
  await kept.forget(one);
  return undefined;
}

export const importNow = (service: Service, id: number): Promise<Import> =>
  answered(service, () => service.client.GET("/api/prospects/imports/{id}", { params: { path: { id } } }));

/** False: it is over by now, or cannot be. */
export async function cancel({ client }: Service, id: number): Promise<boolean> {
  const { response, error } = await client.POST("/api/prospects/imports/{id}/cancel", { params: { path: { id } } });
  if (response.ok || response.status === 409) return response.ok;
  throw new Failed(problemText(response.status, error));
}

/** The same for the same import of the same content: commands at the same time, or on another machine, find one import. */
const keyOf = ({ sha256 }: Content, mapping: string, attempt: number): string =>
  createHash("sha256")
    .update(JSON.stringify([sha256, mapping, attempt]))
    .digest("base64url");

async function create(
  { client, ...service }: Service,
  options: ImportOptions,
  { bytes, sha256 }: Content,
  key: string,
) {
  const { dryRun, mapping } = options;
  let isReplayed = false;
  const made = await answered(service, async () => {
    const answer = await client.POST("/api/prospects/imports", {
      params: { header: { "Idempotency-Key": key } },
      body: { bytes, sha256, dryRun, ...(mapping !== undefined && { mapping }) },
    });
    isReplayed = answer.response.headers.has("idempotency-replayed");
    return answer;
  });
  return { made, isReplayed };
}
