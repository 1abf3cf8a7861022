/**
 * Implements `npm run sbom`. It writes the bill of materials of package-lock.json to build/sbom.json in the CycloneDX format, with `npm
 * sbom`. npm's output contains the time and a random number. The command replaces both, so that the same lockfile always results in the
 * same file.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";
import { optionsOf, runCommand } from "../command/options.ts";

const FILE = "build/sbom.json";

const Bom = z.looseObject({
  bomFormat: z.literal("CycloneDX"),
  metadata: z.looseObject({}),
  components: z.array(z.looseObject({ "bom-ref": z.string() })),
  dependencies: z.array(z.looseObject({ ref: z.string() })),
});

/** Returns the bill of materials as JSON. Throws an error with npm's message if npm fails. */
export function billOfMaterials(): string {
  // `npm sbom` has existed since npm 10. With `--package-lock-only`, its output depends on the lockfile and not on the installed packages.
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  const run = spawnSync("npm", args, { cwd: root, encoding: "utf8", maxBuffer: 64_000_000 });
  if (run.status !== 0) throw new Error(`npm ${args.join(" ")} failed: ${run.stderr}`);
  const { metadata, components, dependencies, ...bom } = z.parse(Bom, JSON.parse(run.stdout));
  const { timestamp: _, ...kept } = metadata;
  const stable = {
    ...bom,
    serialNumber: undefined,
    metadata: kept,
    components: components.toSorted((a, b) => order(a["bom-ref"], b["bom-ref"])),
    dependencies: dependencies.toSorted((a, b) => order(a.ref, b.ref)),
  };
  const hash = createHash("sha256").update(JSON.stringify(stable)).digest("hex");
  return `${JSON.stringify({ ...stable, serialNumber: `urn:uuid:${uuidOf(hash)}` }, undefined, 2)}\n`;
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Derives a UUID of version 8 from a hash. In this version, all digits except those of the version and the variant are free. */
const uuidOf = (hash: string): string =>
  [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`, `8${hash.slice(17, 20)}`, hash.slice(20, 32)].join(
    "-",
  );

const usage = `npm run sbom
    writes the bill of materials into ${FILE}
exit code 0: success, 1: failure, 2: wrong usage`;

export async function main(args: readonly string[]): Promise<undefined> {
  optionsOf(args, {}, usage);
  const file = join(root, FILE);
  mkdirSync(dirname(file), { recursive: true });
  const text = billOfMaterials();
  writeFileSync(file, text);
  console.log(`${FILE}: ${z.parse(Bom, JSON.parse(text)).components.length} components`);
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
