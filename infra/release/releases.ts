/** Reads the version of the project, and the records of earlier releases in `releases/`. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";

const RELEASES = join(root, "releases");

const Release = z.object({
  version: z.string().check(z.regex(/^\d+\.\d+\.\d+$/)),
  date: z.string().check(z.regex(/^\d{4}-\d\d-\d\d$/)),
  /** The commit from which the release was built. */
  commit: z.string().check(z.regex(/^[0-9a-f]{40}$/)),
});
export type Release = z.infer<typeof Release>;

/**
 * Returns the path of a file in `releases/VERSION`. `release` is the release itself, `openapi` its OpenAPI contract, and `rights` the
 * rights of its functions. `shapes` contains its stored rows with their schemas, and some responses. Later releases must stay compatible
 * with the contract, the rows and the rights.
 */
export const releaseFile = (version: string, name: "release" | "openapi" | "shapes" | "rights"): string =>
  join(RELEASES, version, `${name}.json`);

const readJson = (file: string): unknown => JSON.parse(readFileSync(file, "utf8"));

/** The version in package.json, which is the version of the next release. */
export const packageVersion = (): string =>
  z.object({ version: Release.shape.version }).parse(readJson(join(root, "package.json"))).version;

/** Returns all releases, oldest first. */
export function releases(): Release[] {
  const versions = readdirSync(RELEASES);
  return versions.map((version) => Release.parse(readJson(releaseFile(version, "release")))).sort(byVersion);
}

export function lastRelease(): Release {
  const last = releases().at(-1);
  if (last === undefined) throw new Error("the folder releases is empty");
  return last;
}

/** Returns the versions, paths and components of the release's OpenAPI document, without descriptions and examples. */
export const contractOfRelease = ({ version }: Release): unknown => readJson(releaseFile(version, "openapi"));

/**
 * Returns the recorded rights of the release's functions. Returns undefined for release 0.1.0, whose rights need no check. CodeDeploy
 * replaces only functions with an alias step by step, and release 0.1.0 has no aliases. So its code never runs with the rights of a later
 * release.
 */
export function rightsOfRelease({ version }: Release): unknown {
  const file = releaseFile(version, "rights");
  return existsSync(file) ? readJson(file) : undefined;
}

const byVersion = (a: Pick<Release, "version">, b: Pick<Release, "version">): number =>
  a.version.localeCompare(b.version, "en", { numeric: true });

export const isLater = (version: string, release: Release): boolean => byVersion({ version }, release) > 0;
