/** Builds the bundles of all functions for the tests, or takes them from the cache. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll } from "vitest";
import type { Bundle } from "../../../infra/build/bundle.ts";
import { cachedBundle } from "../../../infra/build/bundle-cache.ts";
import { functionFiles } from "../../../infra/synth.ts";

/** Builds the bundles before the tests of a file. Call this function once, at the top of the file. */
export function builtBundles() {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-bundle-"));
  let built: Map<string, Bundle>;
  beforeAll(async () => {
    built = await cachedBundle(functionFiles(), directory);
  });

  const addressOf = (file: string) => pathToFileURL(join(directory, file, "index.mjs")).href;

  return { directory, addressOf, bundles: (): Map<string, Bundle> => built };
}
