/**
 * Runs tools of client developers on the OpenAPI documents: three generators for TypeScript, the Java program openapi-generator, and the
 * linter Spectral. Of the clients of openapi-generator, only that for Python sends requests, because npm has no compilers for the other
 * languages.
 */
import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPENAPI_30_FILE, OPENAPI_FILE, root } from "../../infra/build/bundle.ts";
import { baseUrl, tokenOf } from "../harness/client.ts";
import { newTeam } from "../harness/team.ts";

const cache = join(root, "node_modules/.cache");
const run = promisify(execFile);

/** Installs the tools once for each lock file. A rename at the end keeps a later run from using an incomplete folder. */
async function installedTools(): Promise<string> {
  const lock = readFileSync(join(import.meta.dirname, "package-lock.json"));
  const folder = join(cache, `client-tools-${createHash("sha256").update(lock).digest("hex").slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const unfinished = mkdtempSync(join(cache, "client-tools-unfinished-"));
  for (const file of ["package.json", "package-lock.json"])
    copyFileSync(join(import.meta.dirname, file), join(unfinished, file));
  const options = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
  await run("npm", ["ci", ...options], { cwd: unfinished });
  renameSync(unfinished, folder);
  return folder;
}

/** What calls/story.ts and calls/story.py print if each request of theirs gets the expected answer. */
const storyFacts = (email: string): object => ({
  email,
  lat: 39.7392,
  city: "Denver",
  isTagged: true,
  isListed: true,
  status: "Interested",
  notes: ["Wants a quote."],
  assignedTo: null,
  isInFeed: true,
  isSamePolygon: true,
  isRemoved: true,
});

let tools: string;
const tool = (name: string): string => join(tools, "node_modules/.bin", name);
beforeAll(async () => {
  tools = await installedTools();
}, 600_000);

interface Language {
  /** The name that openapi-generator gives to the generator for this language. */
  readonly generator: string;
  readonly extension: string;
  /** How the class of an item of `GET /api/changes` declares the field `data`, which may contain any object. */
  readonly data: string;
  /** Matches the integer type with 32 bits, which the generated code must not contain. The integers of Dart always have 64 bits. */
  readonly smallNumber: RegExp;
}

const never = /(?!)/;
const languages: readonly Language[] = [
  {
    generator: "kotlin",
    extension: "kt",
    data: "val data: kotlin.collections.Map<kotlin.String, kotlin.Any>?",
    smallNumber: /\bkotlin\.Int\b/,
  },
  { generator: "swift5", extension: "swift", data: "var data: [String:Any]?", smallNumber: /\bInt(?:32)?\b/ },
  { generator: "dart", extension: "dart", data: "Map<String, Object> data", smallNumber: never },
  { generator: "dart-dio", extension: "dart", data: "BuiltMap<String, JsonObject> get data", smallNumber: never },
];

/** All generators that run. The clients for languages that are not in `languages` must only be generated without an error. */
const generators = [...languages.map(({ generator }) => generator), "csharp-netcore", "go", "java", "python"];

const hasJava = spawnSync("java", ["-version"]).status === 0;
if (!hasJava) console.log("Java is not installed, so openapi-generator does not run");
const needed = ["urllib3", "dateutil", "six", "certifi"];
const hasPython = spawnSync("python3", ["-c", `import ${needed.join()}`]).status === 0;
if (!hasPython)
  console.log(`Python 3 with ${needed.join(", ")} is not installed, so the client for Python sends nothing`);

const folder = mkdtempSync(join(tmpdir(), "canvassing-mobile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the contents of the files that declare the schemas and the operations, by the file's name without its extension. */
function filesOf({ generator, extension }: Language): Map<string, string> {
  const pattern = `**/{model,models,Models,api,apis,APIs}/*.${extension}`;
  const files = globSync(pattern, { cwd: join(folder, generator) });
  return new Map(
    files.map((file) => [basename(file, `.${extension}`), readFileSync(join(folder, generator, file), "utf8")]),
  );
}

const matchesIn = (files: ReadonlyMap<string, string>, pattern: RegExp): string[] =>
  [...files].flatMap(([name, code]) => (code.match(pattern) ?? []).map((text) => `${name}: ${text}`));

describe.runIf(hasJava)("the clients of openapi-generator", () => {
  let output = "";
  beforeAll(async () => {
    const jar = join(tools, "node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar");
    const settings = generators.map((generatorName) => {
      const file = join(folder, `${generatorName}.json`);
      const outputDir = join(folder, generatorName);
      mkdirSync(outputDir);
      writeFileSync(file, JSON.stringify({ generatorName, inputSpec: OPENAPI_30_FILE, outputDir }));
      return file;
    });
    // The promise rejects if the exit code is not 0.
    const { stdout, stderr } = await run("java", ["-jar", jar, "batch", "--fail-fast", ...settings]);
    output = `${stdout}${stderr}`;
  }, 600_000);

  test("are generated without an error", () => {
    expect(output).toContain(`Batch generation finished ${generators.length} generators successfully`);
    expect(output.split("\n").filter((line) => /ERROR|Exception/.test(line))).toEqual([]);
  });

  test.runIf(hasPython)("for Python get the expected answers to their requests", async () => {
    const { owner } = await newTeam();
    const access = { BASE_URL: baseUrl(), TOKEN: await tokenOf(owner.email) };
    const env = { ...process.env, ...access, PYTHONPATH: join(folder, "python"), PYTHONDONTWRITEBYTECODE: "1" };
    const { stdout } = await run("python3", [join(import.meta.dirname, "calls/story.py")], { env });
    expect(JSON.parse(stdout)).toEqual(storyFacts(owner.email));
  });

  describe.each(languages)("for $generator", (language) => {
    let files: ReadonlyMap<string, string>;
    beforeAll(() => {
      files = filesOf(language);
    });

    test("read items of any type", () => {
      const item = files.get("ChangeItem") ?? files.get("change_item") ?? "";
      expect(item).toContain(language.data);
      expect(item).not.toContain('"prospects"');
    });

    test("have a name and an existing type for everything", () => {
      expect(files.size).toBeGreaterThan(120);
      expect([...files.keys()].filter((name) => /inline|^any/i.test(name))).toEqual([]);
      expect(matchesIn(files, /\b(?:Inline|AnyType)\w*/)).toEqual([]);
    });

    test("have whole numbers of 64 bits", () => {
      expect(matchesIn(files, language.smallNumber)).toEqual([]);
    });

    test("have no enumeration of booleans, none of the values of a map, and none with a reserved word", () => {
      const models = new Map([...files].filter(([name]) => !/api$/i.test(name)));
      expect(matchesIn(models, /"true"|(?:class|enum) \w*Mapping|\binternal(?: = |\()/)).toEqual([]);
    });
  });
});

const names = ["hey-api", "oazapfts", "swagger-typescript-api"] as const;

/** Returns the command of each generator. It writes the client of a document into a folder. */
const commandsFor = (document: string, folder: string): readonly (readonly [string, ...string[]])[] => [
  ["openapi-ts", "--silent", "--input", document, "--output", `${folder}/hey-api`],
  ["oazapfts", document, `${folder}/oazapfts.ts`],
  [
    ...(["swagger-typescript-api", "generate", "--silent", "--path", document] as const),
    ...["--output", folder, "--name", "swagger-typescript-api.ts"],
  ],
];

test("the clients for TypeScript compile in strict mode, and those of OpenAPI 3.1 get the expected answers to their requests", async () => {
  // The files in calls/ import the generated clients and the tools, so they are copied into the folder where the tools are installed.
  const calls = join(tools, "calls");
  rmSync(calls, { recursive: true, force: true });
  cpSync(join(import.meta.dirname, "calls"), calls, { recursive: true });
  const commands = [...commandsFor(OPENAPI_FILE, "generated"), ...commandsFor(OPENAPI_30_FILE, "generated-3.0")];
  for (const [command, ...options] of commands) await run(tool(command), options, { cwd: calls });
  await run(tool("tsc"), ["--project", "tsconfig.json"], { cwd: calls });
  const { owner } = await newTeam();
  const env = { ...process.env, BASE_URL: baseUrl(), TOKEN: await tokenOf(owner.email) };
  for (const name of names) {
    const script = join(calls, `${name}.mjs`);
    await build({
      entryPoints: [join(calls, `${name}.ts`)],
      outfile: script,
      bundle: true,
      format: "esm",
      platform: "node",
    });
    const { stdout } = await run(process.execPath, [script], { env });
    expect(JSON.parse(stdout), name).toEqual(storyFacts(owner.email));
  }
}, 300_000);

test("Spectral finds nothing in either document by its own rules", async () => {
  const ruleset = join(import.meta.dirname, "spectral.yaml");
  const options = ["lint", "--ruleset", ruleset, "--fail-severity", "hint", "--format", "text"];
  const { stdout } = await run(tool("spectral"), [...options, OPENAPI_FILE, OPENAPI_30_FILE]);
  expect(stdout).toContain("No results with a severity of 'hint' or higher found!");
});
