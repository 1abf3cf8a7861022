/** Runs the shell and TypeScript blocks of docs/build-an-app.md, and compares their output with the JSON blocks of the document. */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { baseUrl } from "../harness/client.ts";

const guide = readFileSync(join(root, "docs/build-an-app.md"), "utf8");
const blocks = [...guide.matchAll(/^```(\w+)[^\n]*\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
  language,
  code,
}));
const codeIn = (language: string): string[] =>
  blocks.filter((block) => block.language === language).map(({ code }) => code);

/** The environment variables of a new terminal. Only the service's port comes from this test. */
const { HOME = "", PATH = "" } = process.env;
const terminal = {
  HOME,
  PATH: PATH.split(":")
    .filter((folder) => !folder.includes("node_modules"))
    .join(":"),
  PORT: new URL(baseUrl()).port,
};

async function run(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { cwd: root, env: terminal });
  const code = new Promise<number | null>((resolve, reject) => child.on("exit", resolve).on("error", reject));
  const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(await code, `${command}: ${complaints}${printed}`.slice(-2_000)).toBe(0);
  return printed;
}

const MARK = "@@ end of block";

/** Converts a JSON block of the document to an expectation of vitest. In the block, `"…"` matches any value. */
function expected(shown: unknown): unknown {
  if (shown === "…") return expect.anything();
  if (Array.isArray(shown)) return shown.map(expected);
  if (typeof shown !== "object" || shown === null) return shown;
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, expected(value)]));
}

const folder = join(root, "docs/client/build");

test("the shell blocks run in one shell, run the TypeScript blocks, and give the output of the JSON blocks", async ({
  skip,
}) => {
  await run("curl", ["--version"]).catch(() => skip("curl is not installed"));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "day.ts"), codeIn("ts").join("\n"));
  const script = codeIn("sh").map((code) => `${code}\necho '${MARK}'\n`);
  const answers = (await run("sh", ["-euc", script.join("")])).split(MARK);
  let shell = -1;
  for (const { language, code } of blocks) {
    if (language === "sh") shell++;
    if (language !== "json") continue;
    const last = answers[shell]?.trim().split("\n").at(-1) ?? "";
    expect(JSON.parse(last)).toMatchObject(Object(expected(JSON.parse(code))));
  }
  const tries = answers
    .join("")
    .match(/^(?:HTTP|idempotency-replayed).*$/gim)
    ?.map((line) => line.trim());
  expect(tries).toEqual([
    expect.stringMatching(/^HTTP.* 201/),
    expect.stringMatching(/^HTTP.* 201/),
    expect.stringMatching(/^idempotency-replayed: true$/i),
  ]);
  const printed = answers[shell] ?? "";
  for (const line of [
    / of Acme Roofing$/,
    /^\d+ pins$/,
    /^page 1: \d+ of \d+$/,
    /^Interested < Not Home$/,
    /^one prospect$/,
  ]) {
    expect(printed).toMatch(new RegExp(line, "m"));
  }
  expect(printed).toContain("/emailAddress: ");
});

test("a compiler that emits JavaScript accepts the TypeScript blocks", async () => {
  const files = ["api.ts", "client.ts"];
  const compiled = join(folder, "compiled");
  mkdirSync(compiled, { recursive: true });
  for (const file of files) cpSync(join(root, "docs/client", file), join(compiled, file));
  writeFileSync(join(compiled, "day.ts"), codeIn("ts").join("\n"));
  const strict = "--ignoreConfig --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess";
  const options = `${strict} --target es2024 --module nodenext --types node`.split(" ");
  await run("npx", [
    "tsc",
    ...options,
    "--rewriteRelativeImportExtensions",
    "--outDir",
    compiled,
    join(compiled, "day.ts"),
  ]);
  expect(readFileSync(join(compiled, "day.js"), "utf8")).toContain('from "./client.js"');
});

test("the tests in this file run every block of the guide", () => {
  expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(["sh", "json", "ts"]));
  expect(guide.match(/^```/gm)).toHaveLength(2 * blocks.length);
});
