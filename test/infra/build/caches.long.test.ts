/** Tests that bundles from the cache equal those of a new build, and that the cache of bundles is bounded. */
import { appendFileSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bundle } from "../../../infra/build/bundle.ts";
import { cachedBundle } from "../../../infra/build/bundle-cache.ts";

const directory = mkdtempSync(join(tmpdir(), "bundle-cache-"));
const caches = join(directory, "caches");
const files = ["health", "docs/page"];

function textsIn(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.\w+$/.test(name));
  return Object.fromEntries(names.toSorted().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

test("bundles from the cache are those of a build, and other settings have other bundles", async () => {
  const [built, signedIn] = [join(directory, "built"), join(directory, "signed-in")];
  const [first, second] = [join(directory, "first"), join(directory, "second")];
  await bundle(files, built);
  await Promise.all([cachedBundle(files, first, {}, caches), cachedBundle(files, second, {}, caches)]);
  expect(textsIn(first)).toEqual(textsIn(built));
  expect(textsIn(second)).toEqual(textsIn(built));
  expect(readdirSync(join(caches, "bundles"))).toHaveLength(1);
  // The folder `first` contains a copy of the cached bundles. A damaged copy must not change the cache.
  appendFileSync(join(first, "health/index.mjs"), "broken");
  await cachedBundle(files, first, {}, caches);
  expect(textsIn(first)).toEqual(textsIn(built));
  const signIn = { tokenPath: "local/token", users: ["owner@acme.test"] };
  await cachedBundle(files, signedIn, { signIn }, caches);
  expect(textsIn(signedIn)["docs/page/page.json"]).toContain("owner@acme.test");
});

test("the local service's bundles, which share modules, have a cache entry of their own", async () => {
  const shared = join(directory, "shared");
  await cachedBundle(files, shared, { isShared: true }, caches);
  expect(readdirSync(shared).filter((name) => name.endsWith(".mjs"))).not.toEqual([]);
  expect(readdirSync(join(caches, "bundles"))).toHaveLength(2);
});

test("the cache keeps the four bundles that were used last", async () => {
  const sets = [["health"], ["docs/page"], ["docs/openapi"], ["docs/openapi30"], ["health", "docs/openapi"]];
  const kept = join(directory, "kept");
  for (const set of sets) await cachedBundle(set, join(directory, "out"), {}, kept);
  expect(readdirSync(join(kept, "bundles"))).toHaveLength(4);
});
