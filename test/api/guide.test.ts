/** docs/build-an-app.md is true: its shell and TypeScript blocks run, and give what its JSON blocks show. */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { root } from "../../infra/bundle.ts";
import { baseUrl, tokenOf } from "./client.ts";

const guide = readFileSync(join(root, "docs/build-an-app.md"), "utf8");
const blocks = [...guide.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
  language,
  code,
}));
const codeIn = (language: string): string[] =>
  blocks.filter((block) => block.language === language).map(({ code }) => code);

/** What the command printed; fails when it did. */
async function run(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { port } = new URL(baseUrl());
  const child = spawn(command, args, { cwd: root, env: { ...process.env, BASE: baseUrl(), PORT: port, ...env } });
  const code = new Promise<number | null>((resolve, reject) => child.on("exit", resolve).on("error", reject));
  const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(await code, `${command}: ${complaints}${printed}`.slice(-2_000)).toBe(0);
  return printed;
}

const MARK = "@@ end of block";

/** `"…"` stands for anything. */
function expected(shown: unknown): unknown {
  if (shown === "…") return expect.anything();
  if (Array.isArray(shown)) return shown.map(expected);
  if (typeof shown !== "object" || shown === null) return shown;
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, expected(value)]));
}

test("the shell blocks give what the JSON blocks after them show", async ({ skip }) => {
  await run("curl", ["--version"]).catch(() => skip("curl is not installed"));
  const script = codeIn("sh").map((code) => `${code}\necho '${MARK}'\n`);
  const answers = (await run("bash", ["-euo", "pipefail", "-c", script.join("")])).split(MARK);
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
});

test("the TypeScript blocks are one module that type-checks and runs", async () => {
  // Beside the client, so that its dependency is found.
  const folder = join(root, "docs/client/build");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of ["api.ts", "client.ts"]) cpSync(join(root, "docs/client", file), join(folder, file));
  writeFileSync(join(folder, "guide.ts"), codeIn("ts").join("\n"));
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: "../../../tsconfig.json", include: ["*.ts"] }),
  );
  await run(join(root, "node_modules/.bin/tsc"), ["--project", folder]);
  const printed = await run(process.execPath, [join(folder, "guide.ts")], { TOKEN: await tokenOf("rep@acme.test") });
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

test("the guide has no block that nobody runs", () => {
  expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(["sh", "json", "ts"]));
  expect(guide.match(/^```/gm)).toHaveLength(2 * blocks.length);
});
