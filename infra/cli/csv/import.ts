/** Implements `import FILE` with an import job. A repeated command resumes its interrupted job. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, openAsBlob } from "node:fs";
import { realpath, stat, writeFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { csvText } from "#shared/prospects/csv/write.ts";
import type { ImportJob, NewImport } from "../../../docs/client/api.ts";
import { exitCodes } from "../command/options.ts";
import { Busy, dataOf, digits, download, Failed, followed, once, replace, retried, type Service } from "./service.ts";

interface ImportOptions {
  readonly file: string;
  readonly errors: string | undefined;
  readonly again: boolean;
  readonly dryRun: boolean;
  readonly reading: Pick<NewImport, "mapping" | "matchBy" | "onMatch">;
}

export async function importFile(service: Service, options: ImportOptions): Promise<number> {
  const { file, errors } = options;
  const content = await checksumOf(file);
  if (errors !== undefined && (await realpath(errors).catch(() => errors)) === (await realpath(file))) {
    throw new Failed(`${errors} is the file to be imported: save the errors elsewhere`);
  }
  const begun = await openOrNew(service, options, content);
  if (begun.state === "awaiting_upload") await upload(service, file, begun.id);
  const text = ({ processed, written, skipped }: ImportJob): string =>
    `${digits(processed)} rows read, ${digits(written)} written, ${digits(skipped)} skipped`;
  const job = await followed(service, () => importNow(service, begun.id), text);
  if (begun.state === "completed") console.log(`imported before, on ${begun.createdAt}; --again imports it once more`);
  report(options, job);
  if (errors !== undefined) await replace(errors, (fresh) => saveErrors(service, job, fresh));
  return job.skipped === 0 ? exitCodes.done : exitCodes.failed;
}

const importNow = ({ client }: Service, id: number): Promise<ImportJob> =>
  dataOf(client.GET("/api/prospects/imports/{id}", { params: { path: { id } } }));

async function checksumOf(file: string) {
  const stats = await stat(file);
  // A pipe or a device cannot be read twice: for the checksum and for the upload.
  if (!stats.isFile()) throw new Failed(`${file} is not a regular file`);
  if (stats.size === 0) throw new Failed(`${file} is empty`);
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return { bytes: stats.size, sha256: hash.digest("base64") };
}

/**
 * Returns the import of this content with these options, or begins it. The idempotency key depends only on content, options and `old`, the
 * id of an earlier import that cannot be used. So a repeated or concurrent command uses the same import. Each dry run is a new import.
 */
async function openOrNew(
  service: Service,
  options: ImportOptions,
  content: Awaited<ReturnType<typeof checksumOf>>,
  old?: number,
): Promise<ImportJob> {
  const { dryRun, reading, again } = options;
  const params = once([content.sha256, reading, old ?? (dryRun ? randomUUID() : null)]);
  const body = { ...content, ...reading, dryRun };
  const { id } = await dataOf(service.client.POST("/api/prospects/imports", { params, body }));
  // If another command has used this key, POST repeats an old response, so read the present state.
  const job = await importNow(service, id);
  const canSend = job.state === "awaiting_upload" && job.upload !== null;
  if (!canSend && job.state !== "running" && (again || job.state !== "completed")) {
    return openOrNew(service, options, content, id);
  }
  console.error(`import ${id}`);
  return job;
}

/** Uploads the file. After a broken connection, sends the whole file again, because a presigned URL accepts a file only in one request. */
function upload(service: Service, file: string, id: number): Promise<void> {
  return retried(service, "the bucket", async () => {
    const { state, upload: link } = await importNow(service, id);
    // If an earlier attempt has uploaded the file but its response was lost, the import no longer waits for the file.
    if (state !== "awaiting_upload") return;
    if (link === null) throw new Failed(`import ${id} waited too long for its file: run the same command again`);
    const { url, headers } = link;
    service.spinner.start("sending the file");
    const response = await fetch(url, { method: "PUT", headers, body: await openAsBlob(file), signal: service.signal });
    // 412: an earlier request has uploaded a file. It is the same one, because the URL accepts no other content.
    if (response.ok || response.status === 412) return;
    const [, code = ""] = /<Code>([^<]+)</.exec(await response.text()) ?? [];
    if (/Digest|Checksum/.test(code)) throw new Failed("the file has changed during the upload");
    throw new Busy(`the bucket answered ${response.status} ${code}`, response.headers.get("retry-after"));
  });
}

/** Saves the errors of all rows. The job contains only the first errors. If there are more, a report in the bucket contains all of them. */
function saveErrors(service: Service, { id, errors, errorReport }: ImportJob, fresh: string): Promise<void> {
  if (errorReport !== null)
    return download(service, async () => (await importNow(service, id)).errorReport?.url, fresh);
  const rows = [["row", "message"], ...errors.map(({ row, message }) => [String(row), message])];
  return writeFile(fresh, csvText(rows), { flush: true });
}

const ERRORS_SHOWN = 10;

function report({ dryRun, reading }: ImportOptions, job: ImportJob): void {
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
  if (encoding !== "utf-8") console.log(`  read as ${encoding}`);
  const ignored = ignoredColumns.map((header) => header || "columns without a header");
  if (ignored.length > 0) console.log(`  not read: ${ignored.join(", ")}`);
  for (const { row, message } of errors.slice(0, ERRORS_SHOWN)) console.log(`  row ${row}: ${message}`);
  if (skipped > ERRORS_SHOWN) console.log(`  and ${digits(skipped - ERRORS_SHOWN)} more: --errors FILE saves all`);
}
