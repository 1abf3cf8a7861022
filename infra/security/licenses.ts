/**
 * Implements `npm run licenses`, which counts packages by license. It fails for a license that is not allowed, or an installation script
 * that `allowScripts` in package.json does not mention.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";
import { exitCodes, optionsOf, runCommand } from "../command/options.ts";
import { type Package, readPackages } from "./lockfile.ts";

/** SPDX identifiers. They permit commercial use without publishing the user's own code. */
const allowed: ReadonlySet<string> = new Set([
  ...["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"],
  ...["Python-2.0", "Unlicense", "Zlib"],
]);

/** These require publishing changes to the package, so they are allowed for unchanged packages that no function contains. */
const allowedForDevelopment: ReadonlySet<string> = new Set(["MPL-2.0"]);

const Manifest = z.object({ allowScripts: z._default(z.record(z.string(), z.boolean()), {}) });

/** Allowed or forbidden in package.json. npm runs no other installation scripts. */
export const namedScripts = (): ReadonlySet<string> => {
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return new Set(Object.keys(z.parse(Manifest, manifest).allowScripts));
};

export function faultsOf(packages: readonly Package[], scripts: ReadonlySet<string>): string[] {
  return packages.flatMap(({ name, version, license, hasInstallScript, isDevelopment }) => [
    ...(license !== undefined && isAllowed(license, isDevelopment)
      ? []
      : [`${name}@${version}: the license ${license ?? "(none)"} is not allowed`]),
    ...(hasInstallScript && !scripts.has(name)
      ? [`${name}@${version}: has a script for its installation; decide in allowScripts of package.json`]
      : []),
  ]);
}

/** For `OR`, as in `(MIT OR GPL-3.0-or-later)`, one license must be allowed, and for `AND`, all of them. */
function isAllowed(expression: string, isDevelopment: boolean): boolean {
  const text = expression.replaceAll(/[()]/g, "");
  return text
    .split(" OR ")
    .some((choice) =>
      choice
        .split(" AND ")
        .every((one) => allowed.has(one.trim()) || (isDevelopment && allowedForDevelopment.has(one.trim()))),
    );
}

/** A second column counts only the packages in a function's code. */
export function report(packages: readonly Package[]): string {
  const byLicense = Map.groupBy(packages, ({ license }) => license ?? "(none)");
  const rows = [...byLicense]
    .toSorted(([a, these], [b, those]) => those.length - these.length || (a < b ? -1 : 1))
    .map(([license, list]) => {
      const deployed = list.filter(({ isDevelopment }) => !isDevelopment).length;
      return `${license.padEnd(26)} ${String(list.length).padStart(5)} ${String(deployed).padStart(9)}`;
    });
  return [`${"license".padEnd(26)} ${"all".padStart(5)} ${"functions".padStart(9)}`, ...rows].join("\n");
}

const usage = `npm run licenses
    prints the number of packages with each license
exit code 0: success, 1: a license or an installation script is not allowed, 2: wrong usage`;

export async function main(args: readonly string[]): Promise<number> {
  optionsOf(args, {}, usage);
  const packages = readPackages();
  console.log(report(packages));
  const faults = faultsOf(packages, namedScripts());
  for (const fault of faults) console.error(fault);
  return faults.length === 0 ? exitCodes.done : exitCodes.failed;
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
