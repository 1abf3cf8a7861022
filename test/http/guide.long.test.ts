/** Compiles the program in docs/build-an-app.md to JavaScript. `npm run newcomer` runs all blocks of the document. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";

const guide = readFileSync(join(root, "docs/build-an-app.md"), "utf8");

test("a compiler that emits JavaScript accepts the TypeScript blocks", () => {
  const blocks = [...guide.matchAll(/^```ts [^\n]*\n(.*?)^```$/gms)].map(([, code = ""]) => code);
  expect(blocks.length).toBeGreaterThan(3);
  // The compiler looks for the packages of the client in the folders above the program, so the program is written below docs/client.
  const build = join(root, "docs/client/build");
  mkdirSync(build, { recursive: true });
  const folder = mkdtempSync(join(build, "compiled-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const file of ["api.ts", "client.ts"]) cpSync(join(root, "docs/client", file), join(folder, file));
  const program = join(folder, "day.ts");
  writeFileSync(program, blocks.join("\n"));
  const strict = "--ignoreConfig --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess";
  const options = `${strict} --target es2024 --module nodenext --types node --rewriteRelativeImportExtensions`.split(
    " ",
  );
  const { status, stdout } = spawnSync("npx", ["tsc", ...options, "--outDir", folder, program], {
    cwd: root,
    encoding: "utf8",
  });
  expect([status, stdout]).toEqual([0, ""]);
  expect(readFileSync(join(folder, "day.js"), "utf8")).toContain('from "./client.js"');
});
