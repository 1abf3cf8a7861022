/** Reads the version of the project, and the record of the last release in `releases/`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";

export const RELEASES = join(root, "releases");

/** The version in package.json. It is the version of the last release, or a later one while the next release is in preparation. */
export const packageVersion = (): string =>
  z.object({ version: z.string() }).parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).version;

export const lastRelease = (): string => z.tuple([z.string()]).parse(readdirSync(RELEASES))[0];

/** Returns a file in the record of the last release. `docs/releasing.md` describes the files. */
export const recorded = (name: "openapi" | "shapes" | "rights"): unknown =>
  JSON.parse(readFileSync(join(RELEASES, lastRelease(), `${name}.json`), "utf8"));
