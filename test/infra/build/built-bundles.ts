/** Builds the bundles of all functions for the tests, or takes them from the cache. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { cachedBundle } from "../../../infra/build/bundle-cache.ts";
import { functionFiles } from "../../../infra/synth.ts";

export const directory = mkdtempSync(join(tmpdir(), "canvassing-bundle-"));
export const bundles = await cachedBundle(functionFiles(), directory);

export const addressOf = (file: string): string => pathToFileURL(join(directory, file, "index.mjs")).href;
