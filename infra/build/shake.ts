/**
 * Makes a bundle smaller by removing unused declarations that esbuild keeps. The AWS SDK declares schemas as arrays with computed keys.
 * esbuild assumes that computing a key has side effects. Rolldown knows that a key with a constant text has none, so it removes unused
 * schemas.
 */
import { rolldown } from "rolldown";

/**
 * Replaces the bundle by a smaller one and returns the new size in bytes. The bundle must be one ES module that imports only modules of
 * Node.js.
 */
export async function shake(file: string): Promise<number> {
  const build = await rolldown({ input: file, platform: "node", external: (_, importer) => importer !== undefined });
  try {
    const { output } = await build.write({ file, format: "esm", minify: true });
    return Buffer.byteLength(output[0].code);
  } finally {
    await build.close();
  }
}
