/** Implements `import FILE` and `export FILE` with import and export jobs. A repeated command resumes its interrupted job. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { csvText } from "#shared/prospects/csv/write.ts";
import type { ExportJob, ImportJob } from "../../../docs/client/api.ts";
import { exitCodes } from "../../command/options.ts";
import { jobOf, local, openJournal, targetOf, writeWhole } from "./files.ts";
import type { ExportOptions, ImportOptions } from "./options.ts";
import { digits, type Step } from "./progress.ts";
import { dataOf, Failed, followed, hasCode, isOpen, retried, retryAfterMs, type Service } from "./service.ts";
import { download, sendFile } from "./transfer.ts";

/** Returns the exit code. Throws Failed, with the code `cutOff` if the same command can resume. */
export async function exportFile(service: Service, { file, filter }: ExportOptions): Promise<number> {
  const { client, progress } = service;
  const path = `${file}.export.json`;
  await targetOf(file);
  progress.hint = `${file} is unchanged: run the same command to resume`;
  const asked = { filter: JSON.stringify(filter) };
  const look = (id: number): Promise<ExportJob> =>
    dataOf(client.GET("/api/prospects/exports/{id}", { params: { path: { id } } }));
  const { own, add } = await openJournal(service, path);
  const known = own.find((entry) => entry.filter === asked.filter);
  const old = await jobOf(look, known);
  const isUsable = old?.state === "running" || (old?.state === "completed" && old.file !== null);
  const params = { header: { "Idempotency-Key": randomUUID() } };
  const job = isUsable ? old : await dataOf(client.POST("/api/prospects/exports", { params, body: filter }));
  if (isUsable) progress.say(`export ${job.id} resumed`);
  else await add(job, asked);
  try {
    const { processed, failure } = await followed(service, () => look(job.id), exportStep);
    if (failure !== null) throw new Failed(`export ${job.id} failed: ${failure}`, "gone");
    const link = async (): Promise<string | undefined> => (await look(job.id)).file?.url;
    // `createGunzip` fails if bytes are missing, because the checksum does not match.
    await download(service, link, (bytes) => pipeline(bytes, createGunzip(), (text) => writeWhole(file, text)));
    progress.end();
    console.log(`${file}: ${digits(processed)} prospects`);
  } catch (error) {
    // The export has failed, or its file no longer exists. Without the journal, the same command begins a new export.
    if (hasCode(error, "gone")) await rm(path, { force: true });
    throw error;
  }
  await rm(path, { force: true });
  return exitCodes.done;
}

/** Returns the exit code. Throws Failed, with the code `cutOff` if the same command can resume. */
export async function importFile(service: Service, options: ImportOptions): Promise<number> {
  const { progress } = service;
  const { file, errors, dryRun } = options;
  const content = await local(file, contentOf(file));
  if (errors !== undefined && (await targetOf(errors)).path === (await targetOf(file)).path) {
    throw new Failed(`${errors} is the file to be imported: save the errors elsewhere`);
  }
  const begun = await (dryRun ? usable(service, options, content) : resumeOrBegin(service, options, content));
  const { id, state, createdAt } = begun;
  const dryHint = dryRun ? "the dry run changed nothing: run the same command to begin again" : undefined;
  progress.hint = dryHint ?? `import ${id} waits for its file: run the same command to send it`;
  if (state === "awaiting_upload") await upload(service, file, content.bytes, id);
  progress.hint = dryHint ?? `import ${id} continues in the service: run the same command to follow it, or cancel it`;
  const job = await followed(service, () => importNow(service, id), importStep);
  progress.end();
  if (state === "completed") console.log(`imported before, on ${createdAt}; --again imports it once more`);
  return report(service, options, job);
}

type Content = { readonly bytes: number; readonly sha256: string };
async function contentOf(file: string): Promise<Content> {
  const stats = await stat(file);
  // A pipe or a device cannot be read twice: for the checksum and for the upload.
  if (!stats.isFile()) throw new Failed(`${file} is not a regular file`);
  if (stats.size === 0) throw new Failed(`${file} is empty`);
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return { bytes: stats.size, sha256: hash.digest("base64") };
}

/** The options that change the result, as a text. It does not depend on the order of `--mapping`. */
function readingText({ mapping, ...matching }: ImportOptions["reading"]): string {
  const sorted = Object.entries(mapping).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify({ mapping: Object.fromEntries(sorted), ...matching });
}

/** Resumes the latest import of the same content by the same user with the same options, or begins a new import. */
async function resumeOrBegin(service: Service, options: ImportOptions, content: Content): Promise<ImportJob> {
  const { own, add } = await openJournal(service, `${options.file}.imports.json`);
  const asked = { sha256: content.sha256, mapping: readingText(options.reading), userId: String(service.userId) };
  const isSame = ({ sha256, mapping, userId }: (typeof own)[number]): boolean =>
    sha256 === asked.sha256 && mapping === asked.mapping && userId === asked.userId;
  let old: ImportJob | undefined;
  for (const entry of new Set([own.at(-1), own.findLast(isSame)])) {
    const job = await jobOf((id) => importNow(service, id), entry);
    if (entry !== undefined && isSame(entry)) old = job;
    // A changed file probably contains many rows of the content that is still being imported, so a second import needs `--again`.
    else if (isOpen(job) && !options.again) {
      const other = `import ${job?.id} with other content or options, or of another user, has not ended`;
      throw new Failed(`${other}: wait, cancel it or add --again`);
    }
  }
  const job = await usable(service, options, content, old);
  if (job !== old) await add(job, asked);
  else if (isOpen(job)) service.progress.say(`import ${job.id} resumed`);
  return job;
}

/** Returns `job` if the command can still send its file, follow it or print its result. Otherwise begins a new import. */
async function usable(service: Service, options: ImportOptions, content: Content, job?: ImportJob): Promise<ImportJob> {
  const { dryRun, reading, again } = options;
  const canSend = job?.state === "awaiting_upload" && job.upload !== null;
  if (canSend || job?.state === "running" || (job?.state === "completed" && !again)) return job;
  // The key depends only on the content, the options and the earlier import, so concurrent commands share one import, even on two machines.
  // Each dry run is a new one.
  const identity = [content.sha256, reading, job?.id ?? (dryRun ? randomUUID() : null)];
  const key = createHash("sha256").update(JSON.stringify(identity)).digest("base64url");
  const body = { ...content, ...reading, dryRun };
  const params = { header: { "Idempotency-Key": key } };
  const { id } = await dataOf(service.client.POST("/api/prospects/imports", { params, body }));
  // If another command has used this key, POST repeats an old response, so read the present state.
  return usable(service, options, content, await importNow(service, id));
}

const importNow = ({ client }: Service, id: number): Promise<ImportJob> =>
  dataOf(client.GET("/api/prospects/imports/{id}", { params: { path: { id } } }));

/** Uploads the file. After a broken connection, it sends the whole file again, because a presigned URL accepts it only in one request. */
async function upload(service: Service, file: string, bytes: number, id: number): Promise<void> {
  const show = (done: number): void => service.progress.show({ name: "sending", done, total: bytes, unit: "bytes" });
  await retried(service, { server: "the bucket", plan: "sending the file again" }, async () => {
    const { state, upload: link } = await importNow(service, id);
    // If an earlier attempt has uploaded the file but its response was lost, the import no longer waits for the file.
    if (state !== "awaiting_upload") return;
    if (link === null) throw new Failed(`import ${id} waited too long for its file`, "cutOff");
    const { status = 0, retryAfter, body } = await sendFile({ ...link, file, bytes }, service.signal, show);
    // 412: an earlier request has uploaded a file. It is the same one, because the URL accepts no other content.
    if ((status >= 200 && status < 300) || status === 412) return;
    const code = /<Code>([^<]+)</.exec(body)?.[1] ?? "";
    if (/Digest|Checksum/.test(code)) throw new Failed("the file has changed during the upload");
    throw new Failed(`the bucket answered ${status} ${code}`.trim(), "busy", retryAfterMs(retryAfter));
  });
}

const exportStep = ({ processed: done, total }: ExportJob): Step => ({ name: "writing", done, total, unit: "rows" });

function importStep({ state, processed, written, skipped: errors }: ImportJob): Step {
  if (written > 0) return { name: "writing", done: written, total: processed - errors, unit: "rows", errors };
  return { name: state === "running" ? "checking" : "waiting", done: processed, unit: "rows", errors };
}

/** How to import the corrected rows of a file without creating the good rows again. */
function correction({ matchBy, onMatch }: ImportOptions["reading"]): string {
  if (matchBy !== undefined && onMatch !== "create") return "correct this file and run the same command";
  return (
    "write only the corrected rows into a new file and import it, or correct this file and add --match-by sourceId --on-match update " +
    "(or --match-by emailAddress) if it has this column, so that the rows with this key are not created again"
  );
}

async function report(service: Service, { dryRun, errors: file, reading }: ImportOptions, job: ImportJob) {
  const { id, state, imported, updated, skipped, errors, failure, encoding, ignoredColumns, errorReport } = job;
  if (state !== "completed") throw new Failed(`import ${id} ${state}${failure === null ? "" : `: ${failure}`}`);
  const unknown = (job.columns ?? []).map(({ header }) => header).join(", ");
  if (unknown !== "") {
    throw new Failed(`the service knows none of the columns: ${unknown}. Name them with --mapping "HEADER=COLUMN"`);
  }
  const would = dryRun ? "would be " : "";
  const updates = reading.matchBy === undefined ? "" : `, ${digits(updated)} ${would}updated`;
  const counts = `${digits(imported)} ${would}imported${updates}, ${digits(skipped)} skipped`;
  console.log(`${dryRun ? "dry run" : "import"} ${id}: ${counts}`);
  if (imported + updated + skipped === 0) console.log("  the file has no rows below its header");
  if (encoding !== "utf-8") console.log(`  read as ${encoding}`);
  const ignored = ignoredColumns.map((header) => header || "columns without a header");
  if (ignored.length > 0) console.log(`  not read: ${ignored.join(", ")}`);
  const shown = errors.slice(0, 10);
  for (const { row, message } of shown) console.log(`  row ${row}: ${message}`);
  const advice = file === undefined ? ": --errors FILE saves all" : "";
  if (skipped > shown.length) console.log(`  and ${digits(skipped - shown.length)} more${advice}`);
  if (skipped > 0 && imported + updated > 0 && !dryRun)
    console.log(`  the other rows are imported: ${correction(reading)}`);
  if (file !== undefined) {
    const rows = [["row", "message"], ...errors.map(({ row, message }) => [String(row), message])];
    // The job contains only the first errors, the report in the bucket all of them.
    const link = async (): Promise<string | undefined> => (await importNow(service, id)).errorReport?.url;
    if (errorReport === null) await writeWhole(file, csvText(rows));
    else await download(service, link, (bytes) => writeWhole(file, bytes));
  }
  return skipped === 0 ? exitCodes.done : exitCodes.failed;
}
