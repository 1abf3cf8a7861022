/** Kept bundles: taken again while all that went into them is the same, and never otherwise. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { builtOnce } from "../../infra/build/bundle-cache.ts";

const root = mkdtempSync(join(tmpdir(), "canvassing-cache-"));
const outDir = join(root, "out");
afterAll(() => rmSync(root, { recursive: true, force: true }));
mkdirSync(join(root, "node_modules"));

let builds = 0;
/** Gives what is then in `outDir`. */
async function built(settings: string): Promise<string> {
  rmSync(outDir, { recursive: true, force: true });
  const bundles = await builtOnce(root, settings, outDir, async () => {
    builds++;
    mkdirSync(join(outDir, "one"), { recursive: true });
    writeFileSync(join(outDir, "one/index.mjs"), `${settings} ${readFileSync(join(root, "a.ts"), "utf8")}`);
    return { inputs: ["a.ts"], bundles: { one: { bytes: 7, modules: ["a.ts"] } } };
  });
  expect(bundles).toEqual({ one: { bytes: 7, modules: ["a.ts"] } });
  return readFileSync(join(outDir, "one/index.mjs"), "utf8");
}

test("a build is repeated when an input or a setting has changed, and only then", async () => {
  const input = (text: string): void => writeFileSync(join(root, "a.ts"), text);
  input("first");
  expect([await built("x"), await built("x"), builds]).toEqual(["x first", "x first", 1]);
  input("other");
  expect([await built("x"), await built("x"), builds]).toEqual(["x other", "x other", 2]);
  expect([await built("y"), await built("y"), builds]).toEqual(["y other", "y other", 3]);
  input("first");
  expect([await built("y"), builds]).toEqual(["y first", 4]);
});

test("where nothing can be kept, it is built each time", async () => {
  const before = builds;
  rmSync(join(root, "node_modules"), { recursive: true });
  writeFileSync(join(root, "node_modules"), "");
  expect([await built("z"), await built("z"), builds]).toEqual(["z first", "z first", before + 2]);
});
