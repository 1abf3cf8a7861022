/** Implements `npm run licenses`: counts packages by license, and fails for a license, script or platform that is not allowed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";
import { exitCodes, optionsOf, runCommand } from "../cli/command/options.ts";

/** SPDX identifiers of licenses that permit commercial use without publishing the user's own code. */
const allowed = [
  ...["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"],
  ...["Python-2.0", "Unlicense", "Zlib"],
];

/** These licenses require publishing changes to the package. They are allowed for unchanged packages that no function contains. */
const allowedForDevelopment = ["MPL-2.0"];

const Package = z.object({
  version: z._default(z.string(), ""),
  license: z._default(z.string(), "(none)"),
  hasInstallScript: z._default(z.boolean(), false),
  /** True if no function contains the package. */
  dev: z._default(z.boolean(), false),
  link: z._default(z.boolean(), false),
  optional: z._default(z.boolean(), false),
  os: z.optional(z.array(z.string())),
  cpu: z.optional(z.array(z.string())),
});
const Lockfile = z.object({ packages: z.record(z.string(), Package) });
const Manifest = z.object({ allowScripts: z._default(z.record(z.string(), z.boolean()), {}) });

export type Package = z.infer<typeof Package> & { readonly name: string };

const read = (file: string): unknown => JSON.parse(readFileSync(join(root, file), "utf8"));

export const readPackages = (): Package[] =>
  Object.entries(z.parse(Lockfile, read("package-lock.json")).packages)
    .filter(([path, { link }]) => path.includes("node_modules/") && !link)
    .map(([path, one]) => ({ ...one, name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length) }));

export function faultsOf(packages: readonly Package[]): string[] {
  const { allowScripts } = z.parse(Manifest, read("package.json"));
  return packages.flatMap(({ name, version, license, hasInstallScript, dev, optional, os, cpu }) => [
    ...(isAllowed(license, dev) ? [] : [`${name}@${version}: the license ${license} is not allowed`]),
    ...(hasInstallScript && !(name in allowScripts)
      ? [`${name}@${version}: has a script for its installation; decide in allowScripts of package.json`]
      : []),
    ...((os ?? cpu) !== undefined && !optional ? [`${name}@${version}: npm cannot install it on each platform`] : []),
  ]);
}

/** An expression with `OR`, such as `(MIT OR GPL-3.0-or-later)`, needs one allowed license. With `AND`, all licenses must be allowed. */
function isAllowed(expression: string, isDevelopment: boolean): boolean {
  const known = new Set([...allowed, ...(isDevelopment ? allowedForDevelopment : [])]);
  const choices = expression.replaceAll(/[()]/g, "").split(" OR ");
  return choices.some((choice) => choice.split(" AND ").every((one) => known.has(one.trim())));
}

const usage = `npm run licenses
    prints the number of packages with each license, and of those in functions
exit code 0: success, 1: a license, an installation script or a platform is not allowed, 2: wrong usage`;

export async function main(args: readonly string[]): Promise<number> {
  optionsOf(args, {}, usage);
  const packages = readPackages();
  const byLicense = [...Map.groupBy(packages, ({ license }) => license)].toSorted(
    ([, a], [, b]) => b.length - a.length,
  );
  console.table(
    byLicense.map(([license, { length: all }]) => {
      const functions = packages.filter((one) => one.license === license && !one.dev).length;
      return { license, all, functions };
    }),
  );
  const faults = faultsOf(packages);
  for (const fault of faults) console.error(fault);
  return faults.length === 0 ? exitCodes.done : exitCodes.failed;
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
