/** The S3 keys of the files that imports, exports and bulk jobs use, and the link to such a file. */
import * as z from "zod/mini";
import type { JobId } from "#shared/aws/sqs.ts";
import { explain } from "#shared/documentation.ts";
import { named, Timestamp } from "#shared/schema.ts";

export const importKeys = {
  /** A copy of a file that was imported within one request. */
  sent: ({ companyId, id }: JobId): string => `imports/${companyId}/${id}.csv`,
  /** S3 sends a message to the import queue for each new key with this prefix. */
  uploaded: ({ companyId, id }: JobId): string => `uploads/${companyId}/${id}.csv`,
  /** Returns the import whose uploaded file has this key, or undefined for any other key. */
  uploadAt: (key: string): JobId | undefined => {
    const [, companyId, id] = /^uploads\/([1-9]\d{0,15})\/([1-9]\d{0,15})\.csv$/.exec(key) ?? [];
    return id === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
  /** The statuses, tags and users at the beginning of the import. */
  names: ({ companyId, id }: JobId): string => `imports/${companyId}/${id}/names.json`,
  matches: ({ companyId, id }: JobId): string => `imports/${companyId}/${id}/matches`,
  chunk: ({ companyId, id }: JobId, number: number): string => `imports/${companyId}/${id}/rows-${number}`,
  /** The last lines of the error report, about rows up to `row`. */
  faults: ({ companyId, id }: JobId, row: number): string => `imports/${companyId}/${id}/errors-${row}`,
  report: ({ companyId, id }: JobId): string => `imports/${companyId}/${id}/errors.csv`,
} as const;

export const exportKeys = {
  file: ({ companyId, id }: JobId): string => `exports/${companyId}/${id}.csv`,
  /** The ids of the exported prospects, in the order of the file. */
  order: ({ companyId, id }: JobId): string => `exports/${companyId}/${id}.order`,
} as const;

export const bulkKeys = {
  /** The ids of up to 16 384 records of the job. */
  members: ({ companyId, id }: JobId, piece: number): string => `bulk/${companyId}/${id}/members-${piece}`,
  /** The polygon of the territory at the time at which the run was created. */
  area: ({ companyId, id }: JobId): string => `bulk/${companyId}/${id}/area`,
  results: ({ companyId, id }: JobId, chunk: number): string => `bulk/${companyId}/${id}/results-${chunk}`,
} as const;

/** The folder with the exports of whole companies. Only an operator's command writes them. */
export const COMPANY_EXPORTS = "company-exports";

export const FileLink = named("FileLink", z.object({ url: z.url(), expiresAt: Timestamp }), "A link into the bucket.");

/* @__PURE__ */ explain([FileLink], () => ({
  fields: { url: "Contains its own signature: send no token with it.", expiresAt: "When the link expires." },
}));
