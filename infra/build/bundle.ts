/** Bundles every function with one esbuild call: one directory per function, each with one ESM file `index.mjs`. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin, version } from "esbuild";
import * as z from "zod/mini";
import { type Built, type Bundle, builtOnce } from "./bundle-cache.ts";
import { docsPage } from "./docs-page.ts";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** A larger bundle starts slower than the budget of a cold start allows. Bytes, minified, by the AWS clients in it. */
export const BUNDLE_BUDGET_BYTES = { table: 300 * 1024, others: 500 * 1024 } as const;

export const budgetGroup = ({ modules }: Bundle): keyof typeof BUNDLE_BUDGET_BYTES =>
  modules.some((path) => /@aws-sdk\/client-(?!dynamodb\/)/.test(path)) ? "others" : "table";

/**
 * Modules that the SDK imports only when it needs them, and never in these functions: credential providers for environments without
 * credentials, which a Lambda function always has, and event streams, which no call of ours uses.
 */
const neverLoaded: Plugin = {
  name: "never-loaded",
  setup: ({ onResolve }) => {
    const names =
      /^(?:@aws-sdk\/credential-provider-|@aws-sdk\/token-providers|@smithy\/credential-provider-imds|@smithy\/core\/event-streams)/;
    onResolve({ filter: names }, ({ kind, path }) =>
      kind === "dynamic-import" ? { path, external: true } : undefined,
    );
  },
};

/** CommonJS dependencies call `require` for the runtime's own modules. */
const REQUIRE_IN_ESM = `import{createRequire as requireFrom}from"node:module";const require=requireFrom(import.meta.url);`;

/**
 * Writes `<outDir>/<file>/index.mjs` for each file below `functions/`.
 * @returns what each bundle is made of, by file.
 */
export async function bundle(files: readonly string[], outDir: string): Promise<Map<string, Bundle>> {
  rmSync(outDir, { recursive: true, force: true });
  mkdirSync(outDir, { recursive: true });
  // Which of several copies of a package is taken, and how its sources are read, stands in files that are no inputs.
  const settings = [import.meta.filename, join(root, "package-lock.json"), join(root, "tsconfig.json")];
  const told = [version, ...files, ...settings.map((file) => readFileSync(file, "utf8"))];
  const bundles = await builtOnce(root, JSON.stringify(told), outDir, () => buildAll(files, outDir));
  addDocuments(outDir);
  return new Map(Object.entries(bundles));
}

async function buildAll(files: readonly string[], outDir: string): Promise<Built> {
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
      "node:http": join(root, "infra/build/node-http.ts"),
    },
    plugins: [neverLoaded],
    banner: { js: REQUIRE_IN_ESM },
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  const bundles = Object.values(metafile.outputs).flatMap(({ entryPoint, bytes, inputs }) => {
    if (entryPoint === undefined) return [];
    const modules = Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []));
    return [[entryPoint.slice("functions/".length, -".ts".length), { bytes, modules }] as const];
  });
  return { inputs: Object.keys(metafile.inputs), bundles: Object.fromEntries(bundles) };
}

/** The OpenAPI document, in the repository, written by `npm run openapi`. */
export const OPENAPI_FILE = join(root, "docs/openapi.json");

/** What functions serve of the interface's description lies beside their bundles. */
function addDocuments(outDir: string): void {
  const page = join(outDir, "docs/page");
  if (existsSync(page)) writeFileSync(join(page, "page.json"), JSON.stringify(docsPage()));
  const methods = join(outDir, "method-not-allowed");
  if (existsSync(methods)) writeFileSync(join(methods, "methods.json"), JSON.stringify(methodsByPath()));
  const openapi = join(outDir, "docs/openapi");
  if (existsSync(openapi)) copyFileSync(OPENAPI_FILE, join(openapi, "openapi.json"));
}

const Described = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

/** The methods that the document has for each path, in capitals. */
function methodsByPath(): Record<string, string[]> {
  const { paths } = Described.parse(JSON.parse(readFileSync(OPENAPI_FILE, "utf8")));
  const methods = Object.entries(paths).map(([path, item]) => [
    path,
    Object.keys(item).map((verb) => verb.toUpperCase()),
  ]);
  return Object.fromEntries(methods);
}
