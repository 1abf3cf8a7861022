/** Implements `import FILE` with an import job. A repeated command resumes its interrupted job. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { realpath, stat, writeFile } from "node:fs/promises";
import { csvText } from "#shared/prospects/csv/write.ts";
import type { ImportJob } from "../../../docs/client/api.ts";
import { exitCodes } from "../command/options.ts";
import { contentOf, download, openJournal, replace } from "./files.ts";
import type { ImportOptions } from "./options.ts";
import { dataOf, digits, Failed, followed, isOpen, retried, retryAfterMs, type Service } from "./service.ts";

/** Returns the exit code. */
export async function importFile(service: Service, options: ImportOptions): Promise<number> {
  const { progress } = service;
  const { file, errors, dryRun } = options;
  const content = await checksumOf(file);
  if (errors !== undefined && (await realpath(errors).catch(() => errors)) === (await realpath(file))) {
    throw new Failed(`${errors} is the file to be imported: save the errors elsewhere`);
  }
  const begun = await (dryRun ? usable(service, options, content) : resumeOrBegin(service, options, content));
  const { id, state, createdAt } = begun;
  const dryHint = dryRun ? "the dry run changed nothing: run the same command to begin again" : undefined;
  progress.hint = dryHint ?? `import ${id} waits for its file: run the same command to send it`;
  if (state === "awaiting_upload") await upload(service, file, content.bytes, id);
  progress.hint = dryHint ?? `import ${id} continues in the service: run the same command to follow it, or cancel it`;
  const job = await followed(
    service,
    () => importNow(service, id),
    (job) => show(service, job),
  );
  progress.end();
  if (state === "completed") console.log(`imported before, on ${createdAt}; --again imports it once more`);
  report(options, job);
  if (errors !== undefined) await replace(errors, (fresh) => saveErrors(service, job, fresh));
  return job.skipped === 0 ? exitCodes.done : exitCodes.failed;
}

const importNow = ({ client }: Service, id: number): Promise<ImportJob> =>
  dataOf(client.GET("/api/prospects/imports/{id}", { params: { path: { id } } }));

type Content = Awaited<ReturnType<typeof checksumOf>>;
async function checksumOf(file: string) {
  const stats = await stat(file);
  // A pipe or a device cannot be read twice: for the checksum and for the upload.
  if (!stats.isFile()) throw new Failed(`${file} is not a regular file`);
  if (stats.size === 0) throw new Failed(`${file} is empty`);
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return { bytes: stats.size, sha256: hash.digest("base64") };
}

/** Resumes the latest import of the same content by the same user with the same options, or begins a new import. */
async function resumeOrBegin(service: Service, options: ImportOptions, content: Content): Promise<ImportJob> {
  const look = (id: number) => importNow(service, id);
  const journal = await openJournal(service, `${options.file}.imports.json`, look);
  const asked = JSON.stringify([content.sha256, options.reading, service.userId]);
  const [old, latest] = [await journal.latestOf(asked), await journal.latest()];
  // A changed file probably contains many rows of the content that is still being imported, so a second import needs `--again`.
  if (latest !== undefined && isOpen(latest) && latest.id !== old?.id && !options.again) {
    const other = `import ${latest.id} with other content or options, or of another user, has not ended`;
    throw new Failed(`${other}: wait, cancel it or add --again`);
  }
  const job = await usable(service, options, content, old);
  if (job !== old) await journal.add(job, asked);
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

/** Uploads the file. After a broken connection, it sends the whole file again, because a presigned URL accepts it only in one request. */
async function upload(service: Service, file: string, bytes: number, id: number): Promise<void> {
  const show = (done: number): void => service.progress.show("sending", done / 1e6, bytes / 1e6, "MB");
  await retried(service, { server: "the bucket", tries: 8, plan: "sending the file again" }, async () => {
    const { state, upload: link } = await importNow(service, id);
    // If an earlier attempt has uploaded the file but its response was lost, the import no longer waits for the file.
    if (state !== "awaiting_upload") return;
    if (link === null) throw new Failed(`import ${id} waited too long for its file`, "resumable");
    const headers = { ...link.headers, "content-length": String(bytes) };
    const body = contentOf(file, bytes, show);
    const response = await fetch(link.url, { method: "PUT", headers, body, duplex: "half", signal: service.signal });
    // 412: an earlier request has uploaded a file. It is the same one, because the URL accepts no other content.
    if (response.ok || response.status === 412) return;
    const [, code] = /<Code>([^<]+)</.exec(await response.text()) ?? [];
    if (code !== undefined && /Digest|Checksum/.test(code)) throw new Failed("the file has changed during the upload");
    const why = ["the bucket answered", response.status, code].filter(Boolean).join(" ");
    throw new Failed(why, "busy", retryAfterMs(response.headers.get("retry-after")));
  });
}

function show({ progress }: Service, { state, processed, written, skipped }: ImportJob): void {
  const errors = `${digits(skipped)} errors,`;
  if (written > 0) progress.show(`writing, ${errors}`, written, processed - skipped, "rows");
  else progress.show(state === "running" ? `checking, ${errors}` : "waiting,", processed, null, "rows");
}

/** Saves the errors of all rows. The job contains only the first errors, the report in the bucket all of them. */
async function saveErrors(service: Service, { id, errors, errorReport }: ImportJob, fresh: string): Promise<void> {
  if (errorReport !== null)
    return download(service, async () => (await importNow(service, id)).errorReport?.url, fresh);
  const rows = [["row", "message"], ...errors.map(({ row, message }) => [String(row), message])];
  await writeFile(fresh, csvText(rows), { flush: true });
}

/** How to import the corrected rows of a file without creating the good rows again. */
function correction({ matchBy, onMatch }: ImportOptions["reading"]): string {
  if (matchBy !== undefined && onMatch !== "create") return "correct this file and run the same command";
  return (
    "write only the corrected rows into a new file and import it, or correct this file and add --match-by sourceId --on-match update " +
    "(or --match-by emailAddress) if it has this column, so that the rows with this key are not created again"
  );
}

function report({ dryRun, errors: file, reading }: ImportOptions, job: ImportJob): void {
  const { id, state, imported, updated, skipped, errors, failure, encoding, ignoredColumns, columns } = job;
  if (state !== "completed") throw new Failed(`import ${id} ${[state, failure].filter(Boolean).join(": ")}`);
  const unknown = columns?.map(({ header }) => header).join(", ");
  if (unknown) {
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
}
