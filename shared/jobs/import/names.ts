/** The names of a company as an import knows them: kept in the bucket, so that each of its runs reads rows alike. */
import * as z from "zod/mini";
import { StoredUser } from "#shared/auth/user-schema.ts";
import { folded } from "#shared/caseless.ts";
import type { JobContext } from "#shared/context.ts";
import { FileGone } from "#shared/errors.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { StoredStatus, StoredTag } from "#shared/reference/schema.ts";
import { ensureTags } from "#shared/reference/tags.ts";

const Kept = z.object({
  version: z.int(),
  statuses: z.array(StoredStatus),
  tags: z.array(StoredTag),
  users: z.array(StoredUser),
  /** Tags that were made for the import: folded value and id. */
  made: z.array(z.tuple([z.string(), z.int()])),
});

export interface KnownNames {
  readonly dictionary: Dictionary;
  /** By folded value, those that were made for the import included. */
  readonly tagIds: ReadonlyMap<string, number>;
}

/** Those of the import's beginning. */
export async function knownNames(context: JobContext, companyId: number, id: number): Promise<KnownNames> {
  const key = fileKeys.names(companyId, id);
  try {
    return namesFrom(Kept.parse(JSON.parse(Buffer.from(await context.objects.get(key)).toString("utf8"))));
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
  }
  return keepNames(context, companyId, id, await freshDictionary(context, companyId), new Map());
}

/** Makes the tags that the file names and the company does not have. */
export async function nameTags(
  context: JobContext,
  companyId: number,
  id: number,
  { dictionary }: KnownNames,
  newTags: readonly string[],
): Promise<KnownNames> {
  return keepNames(context, companyId, id, dictionary, await ensureTags(context, companyId, newTags));
}

async function keepNames(
  { objects }: JobContext,
  companyId: number,
  id: number,
  { version, statuses, tags, users }: Dictionary,
  made: ReadonlyMap<string, number>,
): Promise<KnownNames> {
  const kept: z.infer<typeof Kept> = {
    version,
    statuses: [...statuses.values()],
    tags: [...tags.values()],
    users: [...users.values()],
    made: [...made],
  };
  await objects.put(fileKeys.names(companyId, id), Buffer.from(JSON.stringify(kept)), "application/json");
  return namesFrom(kept);
}

function namesFrom({ version, statuses, tags, users, made }: z.infer<typeof Kept>): KnownNames {
  const byId = <T extends { readonly id: number }>(entries: readonly T[]) => new Map(entries.map((e) => [e.id, e]));
  const known = tags.map(({ id, value }) => [folded(value), id] as const);
  return {
    dictionary: { version, statuses: byId(statuses), tags: byId(tags), users: byId(users) },
    tagIds: new Map([...known, ...made]),
  };
}
