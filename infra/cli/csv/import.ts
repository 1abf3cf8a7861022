/** `import FILE`: sends the file to the service, follows what becomes of it, and tells. */
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { csvText } from "#shared/prospects/csv/write.ts";
import type { Import } from "../../../docs/client/api.ts";
import { type Begun, beginDryRun, beginImport, contentOf, importNow } from "./begin.ts";
import { placeOf, writeWhole } from "./complete-file.ts";
import { openDownload } from "./download.ts";
import { CutOff, exitCodes, Failed, messageOf } from "./fault.ts";
import type { ImportOptions } from "./options.ts";
import { digits, type Progress, type Step } from "./progress.ts";
import type { Service } from "./service.ts";
import { upload } from "./upload.ts";

const FIRST_LOOK_MS = 100;
const LOOK_EVERY_MS = 2_000;
const ERRORS_SHOWN = 10;

/** Gives the exit code. Throws Failed and CutOff. */
export async function importFile(service: Service, options: ImportOptions, progress: Progress): Promise<number> {
  const content = await contentOf(options.file);
  await checkErrorsPlace(options);
  const begun = await (options.dryRun ? beginDryRun : beginImport)(service, options, content);
  const { id, state } = begun.found;
  const wasOver = begun.isOld && state === "completed";
  if (begun.isOld && !wasOver) progress.say(`import ${id} goes on`);
  let isSent = begun.uploaded || state !== "awaiting_upload";
  try {
    if (!isSent) await upload(service, options.file, content, begun, progress);
    isSent = true;
    const over = wasOver ? begun.found : await followed(service, begun, progress);
    progress.end();
    return await report(service, options, over, wasOver);
  } catch (error) {
    progress.end();
    if (!(service.signal.aborted || error instanceof CutOff)) throw error;
    const why = service.signal.aborted ? "" : `${messageOf(error)}\n`;
    throw new CutOff(`${why}${howToGoOn(id, options.dryRun, isSent)}`);
  }
}

/** Before anything is sent, not after. Throws Failed. */
async function checkErrorsPlace({ file, errors }: ImportOptions): Promise<void> {
  if (errors === undefined) return;
  const [own, other] = [await placeOf(file), await placeOf(errors)];
  if (resolve(own.path) === resolve(other.path)) throw new Failed(`${errors} is the file that is to be imported`);
}

function howToGoOn(id: number, isDryRun: boolean, isSent: boolean): string {
  if (isDryRun) return "the dry run has made nothing; the same command begins anew";
  if (!isSent) return `import ${id} waits for its file: the same command sends it`;
  return `import ${id} goes on in the service: the same command follows it; POST /api/prospects/imports/${id}/cancel ends it`;
}

/** Until it is over. */
async function followed(service: Service, { found: { id }, keep }: Begun, progress: Progress): Promise<Import> {
  let known = "";
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(LOOK_EVERY_MS, waitMs * 1.5)) {
    const now = await importNow(service, id);
    if (now.state !== known) await keep({ uploaded: true, state: now.state });
    known = now.state;
    if (known !== "awaiting_upload" && known !== "running") return now;
    progress.show(stepOf(now));
    await sleep(waitMs, undefined, { signal: service.signal });
  }
}

function stepOf({ state, processed, written, skipped }: Import): Step {
  if (state === "awaiting_upload") return { name: "waiting", done: 0, unit: "rows" };
  if (written === 0) return { name: "checking", done: processed, unit: "rows", errors: skipped };
  return { name: "writing", done: written, total: processed - skipped, unit: "rows", errors: skipped };
}

async function report(service: Service, options: ImportOptions, over: Import, wasOver: boolean): Promise<number> {
  const { id, state, imported, skipped, errors, failure } = over;
  if (state !== "completed") throw new Failed(`import ${id} ${state}${failure === null ? "" : `: ${failure}`}`);
  const counts = `${digits(imported)} ${options.dryRun ? "would be imported" : "imported"}, ${digits(skipped)} skipped`;
  if (wasOver) console.log(`imported before, on ${over.createdAt}; --again imports it once more`);
  console.log(`${options.dryRun ? "dry run" : "import"} ${id}: ${counts}`);
  for (const { row, message } of errors.slice(0, ERRORS_SHOWN)) console.log(`  row ${row}: ${message}`);
  const more = skipped - Math.min(errors.length, ERRORS_SHOWN);
  if (more > 0)
    console.log(`  and ${digits(more)} more${options.errors === undefined ? ": --errors FILE saves all" : ""}`);
  if (options.errors !== undefined) await saveErrors(service, options.errors, over);
  return skipped === 0 ? exitCodes.done : exitCodes.skipped;
}

/** All of them, where they are more than an answer holds. */
async function saveErrors(service: Service, file: string, { id, errorReport, errors }: Import): Promise<void> {
  const { signal } = service;
  if (errorReport === null) {
    const rows = [["row", "message"], ...errors.map(({ row, message }) => [String(row), message])];
    return writeWhole(file, [Buffer.from(csvText(rows))], [], signal);
  }
  const link = async (): Promise<string> => (await importNow(service, id)).errorReport?.url ?? errorReport.url;
  const { bytes } = await openDownload({ link, signal, onBreak: () => undefined });
  await writeWhole(file, bytes, [], signal);
}
