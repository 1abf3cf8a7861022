/** Bundles all Lambda functions with one esbuild call. Each function gets a directory with the ES module `index.mjs`. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import * as z from "zod/mini";
import { writeDocsPage } from "./docs-page.ts";
import { shake } from "./shake.ts";

export const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Bundle {
  readonly bytes: number;
  readonly modules: readonly string[];
}

/** Maximum bytes of a bundle. Larger bundles start too slowly. `table` is for functions whose only AWS client is that of DynamoDB. */
export const BUNDLE_BUDGET_BYTES = { table: 365 * 1024, others: 535 * 1024 } as const;

export const budgetGroup = ({ modules }: Bundle): keyof typeof BUNDLE_BUDGET_BYTES =>
  modules.some((path) => /@aws-sdk\/client-(?!dynamodb\/)/.test(path)) ? "others" : "table";

/** A bundle above this share of its maximum size is made smaller by `shake`, which takes 0.1 to 0.4 s for each bundle. */
const SHAKEN_FROM = 0.92;

const isNearLimit = (made: Bundle): boolean => made.bytes > SHAKEN_FROM * BUNDLE_BUDGET_BYTES[budgetGroup(made)];

/**
 * Modules that the AWS SDK imports dynamically and that no function of the service loads: event streams, and all credential providers
 * except the one for Lambda's environment variables.
 */
const NEVER_LOADED =
  /^(?:@aws-sdk\/credential-provider-|@aws-sdk\/token-providers|@smithy\/credential-provider-imds|@smithy\/core\/event-streams)/;

const neverLoaded: Plugin = {
  name: "never-loaded",
  setup: ({ onResolve }) => {
    onResolve({ filter: NEVER_LOADED }, ({ kind, path }) =>
      kind === "dynamic-import" ? { path, external: true } : undefined,
    );
  },
};

const alias = { "node:http": join(root, "infra/build/node-http.ts") };

/** Defines `require` in each bundle, because CommonJS dependencies call it and an ES module does not have it. */
const REQUIRE_IN_ESM = `import{createRequire as requireFrom}from"node:module";const require=requireFrom(import.meta.url);`;

const common = {
  absWorkingDir: root,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node24",
  mainFields: ["module", "main"],
  alias,
  plugins: [neverLoaded],
  banner: { js: REQUIRE_IN_ESM },
  legalComments: "none",
  logLevel: "warning",
} as const satisfies BuildOptions;

const entryPoints = (files: readonly string[]): Record<string, string> =>
  Object.fromEntries(files.map((file) => [`${file}/index`, `functions/${file}.ts`]));

/**
 * Empties `outDir`, and writes the bundle `<outDir>/<file>/index.mjs` for each of `files`. If a function serves a document, the document is
 * beside its bundle.
 * @param files paths of source files below `functions/`, without `.ts`
 * @returns the size and the modules of each bundle, by file
 */
export async function bundle(files: readonly string[], outDir: string): Promise<Map<string, Bundle>> {
  rmSync(outDir, { recursive: true, force: true });
  const { metafile } = await build({
    ...common,
    entryPoints: entryPoints(files),
    outdir: outDir,
    minify: true,
    metafile: true,
  });
  addDocuments(outDir);
  const shaken = bundlesIn(metafile).map(async ([file, made]): Promise<[string, Bundle]> => {
    if (!isNearLimit(made)) return [file, made];
    const output = join(outDir, file, "index.mjs");
    const source = { cwd: root, input: `functions/${file}.ts`, alias, neverLoaded: NEVER_LOADED };
    const limitBytes = BUNDLE_BUDGET_BYTES[budgetGroup(made)];
    return [file, { ...made, bytes: await shake({ ...source, file: output, limitBytes }) }];
  });
  return new Map(await Promise.all(shaken));
}

function bundlesIn({ outputs }: Metafile): [string, Bundle][] {
  return Object.values(outputs).flatMap(({ entryPoint, bytes, inputs }): [string, Bundle][] => {
    if (entryPoint === undefined) return [];
    const modules = Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []));
    return [[entryPoint.slice("functions/".length, -".ts".length), { bytes, modules }]];
  });
}

/**
 * Does the same as `bundle()`, but writes modules that several functions import into shared files. This takes a tenth of the processor time
 * and of the memory. A deployment cannot use shared files, because it uploads only the directory of each function.
 */
export async function bundleShared(files: readonly string[], outDir: string): Promise<Map<string, Bundle>> {
  rmSync(outDir, { recursive: true, force: true });
  const options = { ...common, entryPoints: entryPoints(files), outdir: outDir, splitting: true } as const;
  // Let Node.js write the files. Its errors have a code such as ENOSPC, and the errors of esbuild's own writes have none.
  const { outputFiles, metafile } = await build({ ...options, metafile: true, write: false });
  for (const { path, contents } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, contents);
  }
  addDocuments(outDir);
  return new Map(bundlesIn(metafile));
}

export const OPENAPI_FILE = join(root, "docs/openapi.json");
export const OPENAPI_30_FILE = join(root, "docs/openapi-3.0.json");

function addDocuments(outDir: string): void {
  writeDocsPage(outDir, undefined);
  const methods = join(outDir, "method-not-allowed");
  if (existsSync(methods)) writeFileSync(join(methods, "methods.json"), JSON.stringify(methodsByPath()));
  for (const [name, file] of Object.entries({ openapi: OPENAPI_FILE, openapi30: OPENAPI_30_FILE })) {
    const directory = join(outDir, "docs", name);
    if (existsSync(directory)) copyFileSync(file, join(directory, basename(file)));
  }
}

const Described = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

/** Returns the methods of each path in capital letters. HEAD is added to GET, because API Gateway invokes the same function for both. */
function methodsByPath(): Record<string, string[]> {
  const { paths } = Described.parse(JSON.parse(readFileSync(OPENAPI_FILE, "utf8")));
  const methods = Object.entries(paths).map(([path, item]) => [
    path,
    Object.keys(item).flatMap((verb) => (verb === "get" ? ["GET", "HEAD"] : [verb.toUpperCase()])),
  ]);
  return Object.fromEntries(methods);
}
