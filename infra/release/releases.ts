/** Reads the version of the project, and the record of the last release in `releases/`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";

export const RELEASES = join(root, "releases");

export const readJson = (file: string): unknown => JSON.parse(readFileSync(file, "utf8"));

/** The version in package.json. It is the version of the last release, or a later one while the next release is in preparation. */
export const packageVersion = (): string =>
  z.object({ version: z.string().check(z.regex(/^\d+\.\d+\.\d+$/)) }).parse(readJson(join(root, "package.json")))
    .version;

/** Returns the version of the last release. Only this release is recorded. */
export function lastRelease(): string {
  const [version, ...others] = readdirSync(RELEASES);
  if (version === undefined || others.length > 0) throw new Error("releases does not contain exactly one release");
  return version;
}

/**
 * Returns the content of a file in the record of the last release. `openapi` is its OpenAPI contract without texts. `shapes` contains the
 * rows of a small company, and the schemas of all rows and queue messages. `rights` are the rights of its functions. The next release must
 * be compatible with all of them.
 */
export const recorded = (name: "openapi" | "shapes" | "rights"): unknown =>
  readJson(join(RELEASES, lastRelease(), `${name}.json`));
