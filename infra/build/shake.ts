/**
 * Removes unused declarations that esbuild keeps. The SDK declares each schema as an array with computed keys. esbuild assumes that computed
 * keys have side effects, while Rolldown knows that a key with a constant text has none.
 */
import { rolldown } from "rolldown";

/** Replaces the bundle, which must be one ES module that imports only modules of Node.js. Returns its new size in bytes. */
export async function shake(file: string): Promise<number> {
  const build = await rolldown({ input: file, platform: "node", external: (_, importer) => importer !== undefined });
  try {
    const { output } = await build.write({ file, format: "esm", minify: true });
    return Buffer.byteLength(output[0].code);
  } finally {
    await build.close();
  }
}
