/**
 * Tests clients that the Java program openapi-generator makes. Only the Python client sends requests, because npm has no compilers for the
 * other languages.
 */
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { OPENAPI_30_FILE } from "../../infra/build/bundle.ts";
import { baseUrl, tokenOf } from "../harness/client.ts";
import { installedTools, run, storyFacts } from "../harness/client-tools.ts";
import { newTeam } from "../harness/team.ts";

interface Language {
  /** The name that openapi-generator gives to the generator for this language. */
  readonly generator: string;
  readonly extension: string;
  /** How the class of an item of `GET /api/changes` declares the field `data`, which may contain any object. */
  readonly data: string;
  /** Matches the integer type with 32 bits, which must not occur. The integers of Dart have 64 bits. */
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

/** The clients for the other languages only need to be generated without an error. */
const generators = [...languages.map(({ generator }) => generator), "csharp-netcore", "go", "java", "python"];

const hasJava = spawnSync("java", ["-version"]).status === 0;
if (!hasJava) console.log("Java is not installed, so openapi-generator does not run");
const needed = ["urllib3", "dateutil", "six", "certifi"];
const hasPython = spawnSync("python3", ["-c", `import ${needed.join()}`]).status === 0;
if (!hasPython)
  console.log(`Python 3 with ${needed.join(", ")} is not installed, so the client for Python sends nothing`);

const folder = mkdtempSync(join(tmpdir(), "canvassing-mobile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the files that declare the schemas and the operations, by their name without extension. */
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
    const jar = join(
      await installedTools(),
      "node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar",
    );
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
