/** Bundles every function with one esbuild call: one directory per function, each with one ESM file `index.mjs`. */
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { docsPage } from "./docs-page.ts";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** A larger bundle starts slower than the budget of a cold start allows. Bytes, minified. */
export const BUNDLE_BUDGET_BYTES = 350 * 1024;

/** CommonJS dependencies call `require` for the runtime's own modules. */
const REQUIRE_IN_ESM = `import{createRequire as requireFrom}from"node:module";const require=requireFrom(import.meta.url);`;

/**
 * Writes `<outDir>/<file>/index.mjs` for each file below `functions/`.
 * @returns bytes of each bundle by file.
 */
export async function bundle(files: readonly string[], outDir: string): Promise<Map<string, number>> {
  rmSync(outDir, { recursive: true, force: true });
  mkdirSync(outDir, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(files.map((file) => [`${file}/index`, `functions/${file}.ts`])),
    outdir: outDir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "node",
    target: "node24",
    mainFields: ["module", "main"],
    alias: {
      "@aws-sdk/credential-provider-node": join(root, "infra/environment-credentials.ts"),
      "@smithy/core/event-streams": join(root, "infra/no-event-streams.ts"),
    },
    banner: { js: REQUIRE_IN_ESM },
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  addDocuments(outDir);
  const outputs = Object.values(metafile.outputs);
  return new Map(
    outputs.flatMap(({ entryPoint, bytes }) =>
      entryPoint === undefined ? [] : [[entryPoint.slice("functions/".length, -".ts".length), bytes] as const],
    ),
  );
}

/** The OpenAPI document, in the repository, written by `npm run openapi`. */
export const OPENAPI_FILE = join(root, "docs/openapi.json");

/** What the functions of `functions/docs` serve lies beside their bundles. */
function addDocuments(outDir: string): void {
  const page = join(outDir, "docs/page");
  if (existsSync(page)) writeFileSync(join(page, "page.json"), JSON.stringify(docsPage()));
  const openapi = join(outDir, "docs/openapi");
  if (existsSync(openapi)) copyFileSync(OPENAPI_FILE, join(openapi, "openapi.json"));
}
