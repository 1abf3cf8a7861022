/**
 * Makes a bundle smaller with Rolldown, which removes unused declarations that esbuild keeps, for example unused schemas of the AWS SDK.
 * Rolldown reads the function's source, because a bundle no longer shows which modules are free of side effects.
 */
import { writeFileSync } from "node:fs";
import { rolldown } from "rolldown";

interface Shaken {
  readonly cwd: string;
  readonly input: string;
  /** The file of the bundle, which is overwritten. */
  readonly file: string;
  readonly alias: Record<string, string>;
  /** Matches modules that are not bundled if they are imported dynamically. */
  readonly neverLoaded: RegExp;
  /** A bundle above this size is minified a second time, with SWC. */
  readonly limitBytes: number;
}

/** Modules that have no side effects, although package.json does not say so. Without this list, Rolldown would keep all of their code. */
const WITHOUT_SIDE_EFFECTS = /\/node_modules\/robust-predicates\//;

/** Overwrites `file` with the smaller bundle, and returns its size in bytes. */
export async function shake({ cwd, input, file, alias, neverLoaded, limitBytes }: Shaken): Promise<number> {
  const build = await rolldown({
    cwd,
    input,
    platform: "node",
    // Switch this check off, because it warns of slow builds on a busy machine.
    checks: { bundlerTimings: false },
    resolve: { alias, mainFields: ["module", "main"] },
    treeshake: { moduleSideEffects: [{ test: WITHOUT_SIDE_EFFECTS, sideEffects: false }] },
    plugins: [
      {
        name: "never-loaded",
        resolveId: (id, _, { kind }) =>
          kind === "dynamic-import" && neverLoaded.test(id) ? { id, external: true } : undefined,
      },
    ],
  });
  try {
    const { output } = await build.generate({ format: "esm", minify: true, comments: false, codeSplitting: false });
    const [{ code: made }] = output;
    const code = Buffer.byteLength(made) > limitBytes ? await minified(made) : made;
    writeFileSync(file, code);
    return Buffer.byteLength(code);
  } finally {
    await build.close();
  }
}

/** Minifies a bundle with SWC. This makes it 2 % smaller, but doubles the processor time, so only bundles above `limitBytes` get it. */
async function minified(made: string): Promise<string> {
  const { minify } = await import("@swc/core");
  const { code } = await minify(made, { module: true, compress: { passes: 4 }, mangle: true, ecma: 2022 });
  return code;
}
