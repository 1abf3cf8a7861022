/** The dictionary for an import. A job stores it in the bucket, so that all its invocations convert a name to the same id. */
import * as z from "zod/mini";
import { StoredUser } from "#shared/auth/user-schema.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { folded } from "#shared/caseless.ts";
import type { ApiContext, AppContext } from "#shared/context.ts";
import { ApiError, FileGone } from "#shared/errors.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { StoredStatus, StoredTag } from "#shared/reference/schema.ts";
import { ensureTags } from "#shared/reference/tags.ts";

export type ImportContext = ApiContext & Pick<AppContext, "objects">;

export interface ImportNames {
  readonly dictionary: Dictionary;
  /** Maps the case-folded value of each tag to its id. Tags that the import has created are included. */
  readonly tagIds: ReadonlyMap<string, number>;
}

export function importNames(dictionary: Dictionary, created: Iterable<readonly [string, number]> = []): ImportNames {
  const known = [...dictionary.tags.values()].map(({ id, value }) => [folded(value), id] as const);
  return { dictionary, tagIds: new Map([...known, ...created]) };
}

const StoredNames = z.object({
  version: z.int(),
  statuses: z.array(StoredStatus),
  tags: z.array(StoredTag),
  users: z.array(StoredUser),
  made: z.array(z.tuple([z.string(), z.int()])),
});

/** Returns the dictionary at the beginning of the job. The first invocation stores it in the bucket. */
export async function jobNames(context: ImportContext, { companyId, id }: JobId): Promise<ImportNames> {
  try {
    const bytes = await context.objects.get(importKeys.names(companyId, id));
    const stored = StoredNames.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
    const byId = <T extends { readonly id: number }>(entries: readonly T[]) => new Map(entries.map((e) => [e.id, e]));
    const { version, statuses, tags, users, made } = stored;
    return importNames({ version, statuses: byId(statuses), tags: byId(tags), users: byId(users) }, made);
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
  }
  return storeNames(context, { companyId, id }, await freshDictionary(context, companyId), []);
}

/** Creates missing tags, and stores their ids in the bucket for later invocations. Throws BadFile if the company would have too many. */
export async function addTags(
  context: ImportContext,
  job: JobId,
  { dictionary }: ImportNames,
  newTags: readonly string[],
): Promise<ImportNames> {
  const made = await ensureTags(context, job.companyId, newTags).catch((error: unknown) => {
    throw error instanceof ApiError && error.code === "conflict" ? new BadFile(error.message) : error;
  });
  return storeNames(context, job, dictionary, [...made]);
}

async function storeNames(
  { objects }: ImportContext,
  { companyId, id }: JobId,
  dictionary: Dictionary,
  made: [string, number][],
): Promise<ImportNames> {
  const { version, statuses, tags, users } = dictionary;
  const stored: z.infer<typeof StoredNames> = {
    version,
    statuses: [...statuses.values()],
    tags: [...tags.values()],
    users: [...users.values()],
    made,
  };
  await objects.put(importKeys.names(companyId, id), Buffer.from(JSON.stringify(stored)), "application/json");
  return importNames(dictionary, made);
}
