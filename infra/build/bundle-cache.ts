/** Keeps what esbuild made, for as long as every file that went into it is as it was: a start and a test run build once. */
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";

const Bundle = z.object({
  /** Minified. */
  bytes: z.int(),
  /** Paths of the source files that any of it comes from. */
  modules: z.array(z.string()),
});
export type Bundle = z.infer<typeof Bundle>;

/** What a build came to. */
const Built = z.object({
  /** Files that went into it, from the root of the repository. */
  inputs: z.array(z.string()),
  /** By function's file. */
  bundles: z.record(z.string(), Bundle),
});
export type Built = z.infer<typeof Built>;

/**
 * Fills the empty `outDir` from an earlier build with the same settings and inputs, or else by `build`.
 * @param settings all that a build depends on besides its inputs.
 */
export async function builtOnce(
  root: string,
  settings: string,
  outDir: string,
  build: () => Promise<Built>,
): Promise<Built["bundles"]> {
  const cache = join(root, "node_modules/.cache/canvassing-bundles");
  const name = digest([settings]);
  const kept = restore(root, cache, name, outDir);
  if (kept !== undefined) return kept;
  rmSync(outDir, { recursive: true, force: true });
  const built = await build();
  keep(root, cache, name, outDir, built);
  return built.bundles;
}

/** Undefined: there is none, or a file has changed since. */
function restore(root: string, cache: string, name: string, outDir: string): Built["bundles"] | undefined {
  try {
    const { inputs, bundles } = z.parse(Built, JSON.parse(readFileSync(join(cache, `${name}.json`), "utf8")));
    cpSync(join(cache, `${name}-${contents(root, inputs)}`), outDir, { recursive: true });
    return bundles;
  } catch {
    return undefined;
  }
}

/** Others may do the same at this moment: each name appears whole or not at all. Without a place to write, nothing is kept. */
function keep(root: string, cache: string, name: string, outDir: string, { inputs, bundles }: Built): void {
  try {
    mkdirSync(cache, { recursive: true });
    const place = `${name}-${contents(root, inputs)}`;
    for (const old of readdirSync(cache)) {
      if (!old.startsWith("new-") && old !== place) rmSync(join(cache, old), { recursive: true, force: true });
    }
    const scratch = mkdtempSync(join(cache, "new-"));
    cpSync(outDir, join(scratch, "bundles"), { recursive: true });
    writeFileSync(join(scratch, "index"), JSON.stringify({ inputs, bundles }));
    renameSync(join(scratch, "index"), join(cache, `${name}.json`));
    renameSync(join(scratch, "bundles"), join(cache, place));
    rmSync(scratch, { recursive: true });
  } catch {
    // The next build is as long as this one was.
  }
}

const contents = (root: string, inputs: readonly string[]): string =>
  digest(inputs.map((input) => readFileSync(join(root, input))));

function digest(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length} `).update(part);
  return hash.digest("hex").slice(0, 32);
}
