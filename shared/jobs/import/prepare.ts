/**
 * Finds out two things before an uploaded file is read: its encoding, and the prospects that its rows match. The first invocation of the
 * job stores both, so that later invocations use the same results.
 */
import { gunzipSync, gzipSync } from "node:zlib";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobContext } from "#shared/context.ts";
import { FileGone } from "#shared/errors.ts";
import type { ImportLease } from "#shared/jobs/import/lease.ts";
import { findMatches, Matches } from "#shared/jobs/import/match.ts";
import { keysOfFile, type Matching } from "#shared/jobs/import/read-file.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { type Encoding, encodingOf } from "#shared/prospects/csv/encoding.ts";

/** Interval of renewals of the job's lease, which keeps other invocations away. The lease expires after two minutes. */
const LEASE_RENEWAL_MS = 60_000;

/**
 * Yields the bytes of the uploaded file, and renews the job's lease between the chunks. Over a slow connection, reading a large file takes
 * longer than the lease lasts.
 */
async function* bytesOf({ objects }: JobContext, lease: ImportLease): AsyncGenerator<Uint8Array> {
  const { companyId, id } = lease.stored;
  for await (const chunk of objects.read(importKeys.uploaded(companyId, id), lease.job.etag ?? "")) {
    await lease.heartbeat({}, LEASE_RENEWAL_MS);
    yield chunk;
  }
}

/**
 * Returns the encoding of the uploaded file. Throws BadFile if the file is a workbook of a spreadsheet program (such as xlsx) instead of
 * text.
 */
export async function fileEncoding(context: JobContext, lease: ImportLease): Promise<Encoding> {
  const { encoding: known } = lease.stored;
  if (known !== undefined) return known;
  const encoding = await encodingOf(bytesOf(context, lease));
  await lease.save({ encoding });
  return encoding;
}

/**
 * Returns which prospects the rows match. Returns undefined if the import only creates prospects. Throws BadFile if the file is not CSV or
 * lacks the column with the keys.
 */
export async function fileMatching(
  context: JobContext,
  lease: ImportLease,
  caller: Caller,
  encoding: Encoding,
): Promise<Matching | undefined> {
  const { matching } = lease.job;
  if (matching === undefined) return undefined;
  const key = importKeys.matches(lease.stored.companyId, lease.stored.id);
  try {
    return { ...matching, matches: Matches.fromBytes(gunzipSync(await context.objects.get(key))) };
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
  }
  const reading = { encoding, mapping: lease.mapping, by: matching.by, rowLimit: limits.jobRows };
  const fileKeys = await keysOfFile(bytesOf(context, lease), reading);
  const matches = await findMatches(context.table, caller, fileKeys, {
    onProgress: () => lease.heartbeat({}, LEASE_RENEWAL_MS),
  });
  await context.objects.put(key, gzipSync(matches.bytes), "application/gzip");
  return { ...matching, matches };
}
