/** Tests the key of the build caches. It must change with each source, and only with sources. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { cacheKey } from "../../../infra/build/bundle-cache.ts";

test("a changed source changes the key, even if its name begins like that of the built files; built files do not", () => {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-key-"));
  const keyWith = (...path: readonly string[]): string => {
    mkdirSync(join(directory, ...path, ".."), { recursive: true });
    writeFileSync(join(directory, ...path), "changed");
    return cacheKey([], [relative(root, directory)]);
  };
  const before = keyWith("src", "page.ts");
  expect(keyWith("dist", "index.html")).toBe(before);
  expect(keyWith("dist.sha256")).toBe(before);
  expect(keyWith("node_modules", "package", "index.js")).toBe(before);
  expect(keyWith("src", "distance.ts")).not.toBe(before);
});
