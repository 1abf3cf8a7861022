/**
 * Implements `import FILE`. It sends the file to the service, waits for the end of the import and prints its result. It imports the same
 * content again only with `--again`.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import * as z from "zod/mini";
import { csvText } from "#shared/prospects/csv/write.ts";
import type { ImportJob } from "../../../docs/client/api.ts";
import { messageOf } from "../../local/error.ts";
import { CutOff, exitCodes, Failed, retried } from "./fault.ts";
import { local, readJson, targetOf, writeJson, writeWhole } from "./files.ts";
import type { ImportOptions } from "./options.ts";
import { digits, type Progress, type Step } from "./progress.ts";
import { answered, found, polled, problemOf, type Service } from "./service.ts";
import { download, sendFile } from "./transfer.ts";

const ERRORS_SHOWN = 10;

/**
 * An entry of the journal FILE.imports.json, with which the command resumes. Each entry describes one import of one content of the file.
 */
const Entry = z.object({
  base: z.string(),
  companyId: z.int(),
  sha256: z.string(),
  mapping: z.string(),
  /** Number of earlier imports of the same content. It is above 0 only after `--again` or after an import that did not complete. */
  attempt: z.int(),
  id: z.int(),
  createdAt: z.string(),
  uploaded: z.boolean(),
  state: z.string(),
});
type Entry = z.infer<typeof Entry>;

type Content = Pick<Entry, "sha256"> & { readonly bytes: number };

interface Begun {
  readonly job: ImportJob;
  readonly isOld: boolean;
  readonly uploaded: boolean;
  readonly record: (change: Pick<Entry, "uploaded" | "state">) => Promise<void>;
}

/** Runs the import and returns the exit code. Throws Failed, or CutOff if the same command can resume the import. */
export async function importFile(service: Service, options: ImportOptions, progress: Progress): Promise<number> {
  const content = await contentOf(options.file);
  if (options.errors !== undefined && (await targetOf(options.errors)).path === (await targetOf(options.file)).path) {
    throw new Failed(`${options.errors} is the file to be imported: save the errors elsewhere`);
  }
  const begun = await (options.dryRun
    ? begin(service, options, content, randomUUID())
    : resume(service, options, content));
  const { id, state } = begun.job;
  const isDone = begun.isOld && state === "completed";
  if (begun.isOld && !isDone) progress.say(`import ${id} resumed`);
  let isSent = begun.uploaded || state !== "awaiting_upload";
  try {
    if (!isSent) await upload(service, options.file, content, begun, progress);
    isSent = true;
    const job = isDone ? begun.job : await followed(service, begun, progress);
    progress.end();
    return await report(service, options, job, isDone);
  } catch (error) {
    progress.end();
    if (!(service.signal.aborted || error instanceof CutOff)) throw error;
    const why = service.signal.aborted ? "" : `${messageOf(error)}\n`;
    throw new CutOff(`${why}${howToResume(id, options.dryRun, isSent)}`);
  }
}

function howToResume(id: number, isDryRun: boolean, isSent: boolean): string {
  if (isDryRun) return "the dry run changed nothing: run the same command to begin again";
  if (!isSent) return `import ${id} waits for its file: run the same command to send it`;
  return `import ${id} continues in the service: run the same command to follow it, or POST /api/prospects/imports/${id}/cancel to end it`;
}

async function contentOf(file: string): Promise<Content> {
  const hash = createHash("sha256");
  let bytes = 0;
  // The command reads the file twice: for the checksum and for the upload. A pipe or a device cannot be read twice.
  if (!(await local(file, stat(file))).isFile()) throw new Failed(`${file} is not a regular file`);
  const read = async (): Promise<void> => {
    for await (const chunk of createReadStream(file)) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  };
  await local(file, read());
  if (bytes === 0) throw new Failed(`${file} is empty`);
  return { bytes, sha256: hash.digest("base64") };
}

async function resume(service: Service, options: ImportOptions, content: Content): Promise<Begun> {
  const { base, companyId } = service;
  const { sha256 } = content;
  const path = `${options.file}.imports.json`;
  let entries = (await readJson(path, z.array(Entry))) ?? [];
  const replace = async (old: Entry, ...entry: Entry[]): Promise<void> => {
    entries = [...entries.filter(({ id, base }) => id !== old.id || base !== old.base), ...entry];
    await writeJson(path, entries);
  };
  const lookUp = async (entry: Entry): Promise<ImportJob | undefined> => {
    const job = await found(service, () => getImport(service, entry.id));
    // If the service has changed to a new table since the journal was written, another import may have the same id. So the creation times
    // are compared, too.
    if (job?.createdAt === entry.createdAt) return job;
    await replace(entry);
    return undefined;
  };
  const mapping = readingOf(options);
  const own = entries.filter((entry) => entry.base === base && entry.companyId === companyId);
  for (const other of own.filter((entry) => entry.sha256 !== sha256 && isOpen(entry.state))) {
    const job = await lookUp(other);
    if (job === undefined) continue;
    const isCancelled = job.state === "awaiting_upload" && !other.uploaded && (await cancelled(service, job.id));
    const state = isCancelled ? "cancelled" : job.state;
    await replace(other, { ...other, state });
    // A changed file probably still contains many rows of its earlier content. While the import of the earlier content is running, a second
    // import is probably a mistake. So it needs `--again`.
    if (isOpen(state) && !options.again) {
      throw new Failed(
        `import ${job.id} of what this file held before still runs: wait for it, cancel it, or add --again`,
      );
    }
  }
  const known = own.findLast((entry) => entry.sha256 === sha256);
  for (let attempt = known?.attempt ?? 0; ; attempt++) {
    const old = known?.attempt === attempt ? await lookUp(known) : undefined;
    // The idempotency key depends only on the content, the options and the number of earlier imports. So concurrent commands with the same
    // content share one import, even on two machines.
    const key = createHash("sha256")
      .update(JSON.stringify([sha256, mapping, attempt]))
      .digest("base64url");
    const { job, isOld } = old ? { job: old, isOld: true } : await begin(service, options, content, key);
    const uploaded = old !== undefined && known?.uploaded === true;
    const isSameMapping = old === undefined || known?.mapping === mapping;
    if (!(await isUsable(service, job, uploaded, isSameMapping, options.again))) continue;
    const entry = { base, companyId, sha256, mapping, attempt, id: job.id, createdAt: job.createdAt };
    const record: Begun["record"] = (change) => replace({ ...entry, ...change }, { ...entry, ...change });
    await record({ uploaded, state: job.state });
    return { job, isOld, uploaded, record };
  }
}

/** Returns the options that change how the service reads the file. The same content with other options is another import. */
const readingOf = ({ mapping, matchBy, onMatch }: ImportOptions): string =>
  JSON.stringify(matchBy === undefined ? (mapping ?? null) : [mapping ?? null, matchBy, onMatch]);

const isOpen = (state: string): boolean => state === "awaiting_upload" || state === "running";

/**
 * Returns true if the command can use the existing import: resume it, or print its result. Returns false if the command must begin a new
 * import. Throws Failed if the existing import runs with other options.
 */
async function isUsable(service: Service, job: ImportJob, uploaded: boolean, isSameMapping: boolean, again: boolean) {
  if (job.state === "completed") return !again;
  if (!isOpen(job.state)) return false;
  const canSend = uploaded || (isSameMapping && job.upload !== null);
  if (job.state === "awaiting_upload" && !canSend) return !(await cancelled(service, job.id));
  if (isSameMapping) return true;
  throw new Failed(`import ${job.id} of this file runs with another mapping or matching: wait for it or cancel it`);
}

/** Cancels the import. Returns false if the import has already ended. */
async function cancelled({ client }: Service, id: number): Promise<boolean> {
  const { response, error } = await client.POST("/api/prospects/imports/{id}/cancel", { params: { path: { id } } });
  if (response.ok || response.status === 409) return response.ok;
  throw problemOf(response.status, error);
}

const getImport = ({ client }: Service, id: number) =>
  client.GET("/api/prospects/imports/{id}", { params: { path: { id } } });
const importNow = (service: Service, id: number): Promise<ImportJob> => answered(service, () => getImport(service, id));

async function begin(
  service: Service,
  options: ImportOptions,
  { bytes, sha256 }: Content,
  key: string,
): Promise<Begun> {
  const { dryRun, mapping, matchBy, onMatch } = options;
  const matching = matchBy === undefined || onMatch === undefined ? {} : { matchBy, onMatch };
  const body = { bytes, sha256, dryRun, ...(mapping !== undefined && { mapping }), ...matching };
  let isOld = false;
  const made = await answered(service, async () => {
    const params = { header: { "Idempotency-Key": key } };
    const answer = await service.client.POST("/api/prospects/imports", { params, body });
    isOld = answer.response.headers.has("idempotency-replayed");
    return answer;
  });
  return {
    job: isOld ? await importNow(service, made.id) : made,
    isOld,
    uploaded: false,
    record: async () => undefined,
  };
}

/**
 * Uploads the file. After a broken connection, it sends the whole file again, because a presigned URL accepts a file only in one request.
 */
async function upload(service: Service, file: string, { bytes }: Content, { job, record }: Begun, progress: Progress) {
  const { signal } = service;
  const show = (done: number): void => progress.show({ name: "sending", done, total: bytes, unit: "bytes" });
  await retried(
    signal,
    async (attempt) => {
      const { state, upload: link } = attempt === 1 ? job : await importNow(service, job.id);
      // An earlier attempt has uploaded the file, but its response was lost.
      if (state !== "awaiting_upload") return;
      if (link === null) throw new CutOff(`import ${job.id} waited too long for its file`);
      const { status, body } = await sendFile({ ...link, file, bytes }, signal, show);
      // 412 means that an earlier request to this URL has uploaded a file. It is the same file, because the URL accepts no other content.
      if ((status >= 200 && status < 300) || status === 412) return;
      const code = /<Code>([^<]+)</.exec(body)?.[1] ?? "";
      if (/Digest|Checksum/.test(code)) throw new Failed("the file has changed during the upload");
      throw new Error(`the bucket answered ${status} ${code}`.trim());
    },
    { onRetry: (why) => progress.say(`${why}: sending the file again`) },
  );
  await record({ uploaded: true, state: "awaiting_upload" });
}

async function followed(service: Service, { job: { id }, record }: Begun, progress: Progress): Promise<ImportJob> {
  let known = "";
  return polled(service, async () => {
    const job = await importNow(service, id);
    if (job.state !== known) await record({ uploaded: true, state: job.state });
    known = job.state;
    if (!isOpen(known)) return job;
    progress.show(stepOf(job));
    return undefined;
  });
}

function stepOf({ state, processed, written, skipped }: ImportJob): Step {
  if (state === "awaiting_upload") return { name: "waiting", done: 0, unit: "rows" };
  if (written === 0) return { name: "checking", done: processed, unit: "rows", errors: skipped };
  return { name: "writing", done: written, total: processed - skipped, unit: "rows", errors: skipped };
}

async function report(
  service: Service,
  { dryRun, errors: file, matchBy }: ImportOptions,
  job: ImportJob,
  isDone: boolean,
) {
  const { id, state, imported, updated, skipped, errors, failure, encoding, ignoredColumns } = job;
  if (state !== "completed") throw new Failed(`import ${id} ${state}${failure === null ? "" : `: ${failure}`}`);
  if (isDone) console.log(`imported before, on ${job.createdAt}; --again imports it once more`);
  const would = dryRun ? "would be " : "";
  const updates = matchBy === undefined ? "" : `, ${digits(updated)} ${would}updated`;
  const counts = `${digits(imported)} ${would}imported${updates}, ${digits(skipped)} skipped`;
  console.log(`${dryRun ? "dry run" : "import"} ${id}: ${counts}`);
  if (encoding !== "utf-8") console.log(`  read as ${encoding}`);
  const ignored = ignoredColumns.map((header) => header || "columns without a header");
  if (ignored.length > 0) console.log(`  not read: ${ignored.join(", ")}`);
  for (const { row, message } of errors.slice(0, ERRORS_SHOWN)) console.log(`  row ${row}: ${message}`);
  const more = skipped - Math.min(errors.length, ERRORS_SHOWN);
  if (more > 0) console.log(`  and ${digits(more)} more${file === undefined ? ": --errors FILE saves all" : ""}`);
  if (file !== undefined) await writeWhole(file, errorRows(service, job));
  return skipped === 0 ? exitCodes.done : exitCodes.failed;
}

/**
 * Returns all errors of the import as CSV. The import job itself contains only the first errors. If there are more, the report in the
 * bucket contains all of them.
 */
function errorRows(service: Service, { id, errorReport, errors }: ImportJob) {
  if (errorReport === null) {
    const rows = [["row", "message"], ...errors.map(({ row, message }) => [String(row), message])];
    return [Buffer.from(csvText(rows))];
  }
  const link = async (): Promise<string> => (await importNow(service, id)).errorReport?.url ?? errorReport.url;
  return download(link, service.signal, () => undefined);
}
