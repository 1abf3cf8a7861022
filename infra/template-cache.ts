/**
 * Caches the CloudFormation templates with which the local service starts. Without this cache, each start would load the CDK and synthesize
 * the templates, which takes seconds. A deployment never uses this cache.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod/mini";
import {
  type BundleOptions,
  CACHES,
  cachedBundle,
  cacheKey,
  markUsed,
  publish,
  removeOldEntries,
} from "./build/bundle-cache.ts";
import { inOwnProcess } from "./build/own-process.ts";
import { codeOf, pathOf } from "./cli/command/error.ts";
import type { DeployConfig } from "./settings/config.ts";
import type { SynthInput } from "./synth-process.ts";

const SYNTH = fileURLToPath(new URL("synth-process.ts", import.meta.url));

/** Number of cached sets of templates, each below 1 MB. Tests use about ten for each version of the sources, so three Git branches fit. */
const KEPT = 32;

/** Returns the issuer that the cached templates contain instead of the real one, whose port can differ at each start. */
const issuerOn = ({ protocol, hostname }: URL): string => `${protocol}//${hostname}:1/issuer-of-the-start`;
/** Returns the URL of the console that the cached templates contain instead of the real URL, whose port can also differ at each start. */
const consoleOn = ({ protocol, hostname }: URL): string => `${protocol}//${hostname}:1/console-of-the-start`;
/** The directory that the cached templates contain in the paths of the bundles instead of the real directory. */
const DIRECTORY = "/directory-of-the-start";

const Entry = z.object({ files: z.array(z.string()), templates: z.array(z.unknown()) });

type LocalConfig = DeployConfig & { readonly issuer: string; readonly jwksUri: string };

/**
 * Does the same as `templatesInOrder()`, with templates from the cache if neither settings nor sources have changed. If the cache cannot be
 * written, uses a cache beside `outDir`.
 */
export async function cachedTemplates(
  config: LocalConfig,
  outDir: string,
  options: BundleOptions,
  onStep: (step: string) => void = () => undefined,
  caches: string = CACHES,
): Promise<readonly unknown[]> {
  const own = resolve(outDir, "../caches");
  try {
    return await templatesFrom(existsSync(own) ? own : caches, config, outDir, options, onStep);
  } catch (error) {
    // Errors of a full disk name no path. `refuseFullDisk` has found space in DATA_DIR, so the disk of the cache is the full one.
    if (codeOf(error) !== "ENOSPC" && pathOf(error)?.startsWith(caches) !== true) throw error;
    console.error(`${caches} cannot be written (${codeOf(error)}), so this start builds in ${own}`);
    return templatesFrom(own, config, outDir, options, onStep);
  }
}

async function templatesFrom(
  caches: string,
  config: LocalConfig,
  outDir: string,
  options: BundleOptions,
  onStep: (step: string) => void,
): Promise<readonly unknown[]> {
  const issuer = issuerOn(new URL(config.issuer));
  const localUrl = config.console?.localUrl;
  const console = localUrl === undefined ? undefined : consoleOn(new URL(localUrl));
  const general = {
    ...config,
    issuer,
    jwksUri: config.jwksUri.replace(config.issuer, issuer),
    ...(console !== undefined && { console: { ...config.console, localUrl: console } }),
  };
  const entry = join(caches, "templates", `${cacheKey([JSON.stringify(general), JSON.stringify(options)])}.json`);
  const isCached = existsSync(entry);
  if (!isCached) await addEntry(entry, { config: general, outDir, options, caches }, onStep);
  const { files, templates } = Entry.parse(
    read(entry, {
      [issuer]: config.issuer,
      [DIRECTORY]: resolve(outDir),
      ...(console !== undefined && localUrl !== undefined && { [console]: localUrl }),
    }),
  );
  if (isCached) await cachedBundle(files, join(outDir, "bundles"), options, caches);
  markUsed(entry);
  onStep(isCached ? "copied the functions" : "built the templates");
  return templates;
}

async function addEntry(entry: string, input: SynthInput, onStep: (step: string) => void): Promise<void> {
  const cache = join(entry, "..");
  mkdirSync(cache, { recursive: true });
  const text = JSON.stringify(await inOwnProcess(SYNTH, input, onStep));
  const made = `${entry}-${process.pid}`;
  writeFileSync(made, text.replaceAll(resolve(input.outDir), DIRECTORY));
  publish(made, entry);
  removeOldEntries(cache, KEPT);
}

function read(entry: string, replacements: Readonly<Record<string, string>>): unknown {
  const replace = (text: string): string =>
    Object.entries(replacements).reduce((made, [from, to]) => made.replaceAll(from, to), text);
  return JSON.parse(readFileSync(entry, "utf8"), (_, value: unknown) =>
    typeof value === "string" ? replace(value) : value,
  );
}
