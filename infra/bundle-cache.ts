/** Keeps what esbuild made, for as long as every file that went into it is as it was: a start and a test run build once. */
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";

/** What a build came to. */
export interface Built {
  /** Files that went into it, from the root of the repository. */
  readonly inputs: readonly string[];
  /** Bytes of each bundle by file. */
  readonly sizes: Readonly<Record<string, number>>;
}

const Index = z.object({ inputs: z.array(z.string()), sizes: z.record(z.string(), z.number()) });

/**
 * Fills the empty `outDir` from an earlier build with the same settings and inputs, or else by `build`.
 * @param settings all that a build depends on besides its inputs.
 */
export async function builtOnce(
  root: string,
  settings: string,
  outDir: string,
  build: () => Promise<Built>,
): Promise<Built["sizes"]> {
  const cache = join(root, "node_modules/.cache/canvassing-bundles");
  const name = digest([settings]);
  const kept = restore(root, cache, name, outDir);
  if (kept !== undefined) return kept;
  rmSync(outDir, { recursive: true, force: true });
  const built = await build();
  keep(root, cache, name, outDir, built);
  return built.sizes;
}

/** Undefined: there is none, or a file has changed since. */
function restore(root: string, cache: string, name: string, outDir: string): Built["sizes"] | undefined {
  try {
    const { inputs, sizes } = z.parse(Index, JSON.parse(readFileSync(join(cache, `${name}.json`), "utf8")));
    cpSync(join(cache, `${name}-${contents(root, inputs)}`), outDir, { recursive: true });
    return sizes;
  } catch {
    return undefined;
  }
}

/** Others may do the same at this moment: each name appears whole or not at all. Without a place to write, nothing is kept. */
function keep(root: string, cache: string, name: string, outDir: string, { inputs, sizes }: Built): void {
  try {
    mkdirSync(cache, { recursive: true });
    const place = `${name}-${contents(root, inputs)}`;
    for (const old of readdirSync(cache)) {
      if (!old.startsWith("new-") && old !== place) rmSync(join(cache, old), { recursive: true, force: true });
    }
    const scratch = mkdtempSync(join(cache, "new-"));
    cpSync(outDir, join(scratch, "bundles"), { recursive: true });
    writeFileSync(join(scratch, "index"), JSON.stringify({ inputs, sizes }));
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
