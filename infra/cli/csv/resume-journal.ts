/** What the command remembers beside a file, so that the same command goes on where another one ended. */
import { open, readFile, rename, rm } from "node:fs/promises";
import * as z from "zod/mini";
import { Failed } from "./fault.ts";

/** One import of one content of the file. */
const KeptImport = z.object({
  base: z.string(),
  companyId: z.int(),
  /** Of the file, in base64. */
  sha256: z.string(),
  /** As JSON. */
  mapping: z.string(),
  /** Which of the imports of this content it is, from 0. */
  attempt: z.int(),
  id: z.int(),
  createdAt: z.string(),
  /** The bucket has taken the file. */
  uploaded: z.boolean(),
  /** As it was last seen. */
  state: z.string(),
});
export type KeptImport = z.infer<typeof KeptImport>;

const KeptExport = z.object({
  base: z.string(),
  companyId: z.int(),
  filter: z.string(),
  id: z.int(),
  createdAt: z.string(),
});
export type KeptExport = z.infer<typeof KeptExport>;

const isSame = (a: KeptImport, b: KeptImport): boolean => a.id === b.id && a.base === b.base;

/** `prospects.csv` -> `prospects.csv.imports.json`, oldest first. Stays there: it is how a file is known to be imported. */
export class KeptImports {
  readonly #place: string;
  #all: readonly KeptImport[];

  private constructor(place: string, all: readonly KeptImport[]) {
    this.#place = place;
    this.#all = all;
  }

  /** Throws Failed where something else has this name. */
  static async open(file: string): Promise<KeptImports> {
    const place = `${file}.imports.json`;
    return new KeptImports(place, (await readJson(place, z.array(KeptImport))) ?? []);
  }

  get all(): readonly KeptImport[] {
    return this.#all;
  }

  /** In place of what was known of the same import. */
  async keep(one: KeptImport): Promise<void> {
    this.#all = [...this.#all.filter((other) => !isSame(one, other)), one];
    await writeJson(this.#place, this.#all);
  }

  /** The service knows nothing of it any more. */
  async forget(one: KeptImport): Promise<void> {
    this.#all = this.#all.filter((other) => !isSame(one, other));
    await writeJson(this.#place, this.#all);
  }
}

const exportPlace = (file: string): string => `${file}.export.json`;

/** An export that the service makes for this file. Undefined where there is none. */
export const keptExport = (file: string): Promise<KeptExport | undefined> => readJson(exportPlace(file), KeptExport);
export const keepExport = (file: string, one: KeptExport): Promise<void> => writeJson(exportPlace(file), one);
export const forgetExport = (file: string): Promise<void> => rm(exportPlace(file), { force: true });

async function readJson<S extends z.ZodMiniType>(place: string, schema: S): Promise<z.output<S> | undefined> {
  const text = await readFile(place, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new Failed(`${place} is not what this command keeps there: take it away`);
  }
}

/** Whole or not at all, whenever the machine stops. */
async function writeJson(place: string, value: unknown): Promise<void> {
  const fresh = `${place}.${process.pid}.tmp`;
  const handle = await open(fresh, "w");
  try {
    await handle.writeFile(`${JSON.stringify(value, undefined, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(fresh, place);
}
