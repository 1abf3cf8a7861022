/** The local files of the CSV command. After a crash, a file has either its old content or its complete new content. */
import { existsSync } from "node:fs";
import { readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import * as z from "zod/mini";
import { codeOf, messageOf } from "../../command/error.ts";
import { Failed, hasCode, type Service } from "./service.ts";

const faults: Readonly<Record<string, string>> = { ENOENT: "does not exist", EFBIG: "is larger than a file may be" };

/** A sentence for the user. The code is `final`, so the work is not retried. */
export function fileFault(error: unknown, path: string): Failed {
  if (error instanceof Failed) return error;
  const sentence = faults[codeOf(error) ?? ""] ?? `cannot be used: ${messageOf(error).replace(/^E[A-Z]+: /, "")}`;
  return new Failed(`${path} ${sentence}`);
}

export const local = <T>(path: string, work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw fileFault(error, path);
  });

/** Returns the path behind symbolic links, and the mode. Refuses devices and pipes, because `writeWhole` would replace them. */
export async function targetOf(file: string): Promise<{ readonly path: string; readonly mode?: number }> {
  const existing = await stat(file).catch(() => undefined);
  if (existing?.isFile()) return { path: await local(file, realpath(file)), mode: existing.mode };
  if (existing !== undefined) throw new Failed(`${file} is not a regular file and cannot be replaced`);
  await local(dirname(file), stat(dirname(file)));
  return { path: file };
}

/** Writes a new file that then replaces `file`. After an error, the old file is unchanged. */
export async function writeWhole(file: string, bytes: AsyncIterable<Uint8Array> | string): Promise<void> {
  const { path, mode } = await targetOf(file);
  const fresh = `${path}.${process.pid}.part`;
  try {
    await writeFile(fresh, bytes, { mode, flush: true });
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw fileFault(error, path);
  }
}

/** An entry of the journal, the local file with the jobs that the command has begun. Further fields are what the user asked for. */
const Entry = z.looseObject({ base: z.string(), companyId: z.int(), id: z.int(), createdAt: z.string() });
type Entry = z.infer<typeof Entry>;

/** Opens the journal in the local file `path`. If an interrupted command is run again, it finds the job to resume in the journal. */
export async function openJournal({ base, companyId }: Service, path: string) {
  const entries = existsSync(path) ? entriesIn(await local(path, readFile(path, "utf8")), path) : [];
  return {
    /** The entries of the journal that belong to this company of this service. The last entry is the latest. */
    own: entries.filter((entry) => entry.base === base && entry.companyId === companyId),
    add: ({ id, createdAt }: Pick<Entry, "id" | "createdAt">, asked: Readonly<Record<string, string>>) =>
      writeWhole(path, JSON.stringify([...entries, { base, companyId, ...asked, id, createdAt }], undefined, 2)),
  };
}

function entriesIn(text: string, path: string): Entry[] {
  try {
    return z.parse(z.array(Entry), JSON.parse(text));
  } catch {
    throw new Failed(`${path} is not a journal of this command: move it away`);
  }
}

/** Undefined if there is no entry, or if the service no longer has the job. */
export async function jobOf<J extends { createdAt: string }>(look: (id: number) => Promise<J>, entry?: Entry) {
  if (entry === undefined) return undefined;
  const job = await look(entry.id).catch((error) => (hasCode(error, "gone") ? undefined : Promise.reject(error)));
  // After a switch to another table, another job may have the same id.
  return job?.createdAt === entry.createdAt ? job : undefined;
}
