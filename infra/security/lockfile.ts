/** Reads the packages of package-lock.json. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";

const Lockfile = z.object({
  packages: z.record(
    z.string(),
    z.looseObject({
      version: z.optional(z.string()),
      license: z.optional(z.string()),
      hasInstallScript: z.optional(z.boolean()),
      dev: z.optional(z.boolean()),
      link: z.optional(z.boolean()),
      optional: z.optional(z.boolean()),
      os: z.optional(z.array(z.string())),
      cpu: z.optional(z.array(z.string())),
    }),
  ),
});

export interface Package {
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
  readonly hasInstallScript: boolean;
  /** No function contains it. */
  readonly isDevelopment: boolean;
  /** The package is not optional. On a platform that it does not support, npm stops the installation with EBADPLATFORM. */
  readonly needsItsPlatform: boolean;
}

/** Returns the installed packages, except the project's own packages. */
export function readPackages(text = readFileSync(join(root, "package-lock.json"), "utf8")): Package[] {
  const { packages } = z.parse(Lockfile, JSON.parse(text));
  return Object.entries(packages)
    .filter(([path, { link }]) => path.includes("node_modules/") && link !== true)
    .map(([path, { version = "", license, hasInstallScript = false, dev = false, optional = false, os, cpu }]) => ({
      name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
      version,
      license,
      hasInstallScript,
      isDevelopment: dev,
      needsItsPlatform: !optional && (os !== undefined || cpu !== undefined),
    }));
}
