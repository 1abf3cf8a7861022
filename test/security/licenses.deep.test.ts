/** Tests the report of licenses. Also tests that the same lockfile always makes the same bill of materials. */
import { describe, expect, it } from "vitest";
import { faultsOf, namedScripts, report } from "../../infra/security/licenses.ts";
import { type Package, readPackages } from "../../infra/security/lockfile.ts";
import { billOfMaterials } from "../../infra/security/sbom.ts";

const one: Package = {
  name: "a",
  version: "1.0.0",
  license: "MIT",
  hasInstallScript: false,
  isDevelopment: false,
  needsItsPlatform: false,
};
const faults = (change: Partial<Package>) => faultsOf([{ ...one, ...change }], new Set(["known"]));

describe("the licenses of the lockfile", () => {
  it("are all allowed, and package.json names each package with a script for its installation", () => {
    const packages = readPackages();
    expect(packages.length).toBeGreaterThan(100);
    expect(faultsOf(packages, namedScripts())).toEqual([]);
    expect(report(packages)).toMatch(/^MIT +\d+ +\d+$/m);
  });

  it.each([
    ["GPL-3.0-only", false],
    ["AGPL-3.0-or-later", true],
    [undefined, false],
    ["UNLICENSED", false],
    ["MIT AND GPL-3.0-only", false],
    // Under this license, changes of the code would have to be published, so functions must not contain such code.
    ["MPL-2.0", false],
  ])("%s is a fault", (license, isDevelopment) => {
    expect(faults({ license, isDevelopment })).toEqual([expect.stringContaining("is not allowed")]);
  });

  it.each([
    ["ISC", false],
    ["(MIT OR GPL-3.0-or-later)", false],
    ["MPL-2.0", true],
  ])("%s is allowed", (license, isDevelopment) => {
    expect(faults({ license, isDevelopment })).toEqual([]);
  });

  it("do not excuse a script that npm would run at the installation", () => {
    expect(faults({ hasInstallScript: true })).toEqual([expect.stringContaining("has a script for its installation")]);
    expect(faults({ name: "known", hasInstallScript: true })).toEqual([]);
  });
});

it("the bill of materials has each package of the lockfile, and is the same each time", () => {
  const text = billOfMaterials();
  expect(billOfMaterials()).toBe(text);
  for (const { name, version } of readPackages()) expect(text).toContain(`"${name}@${version}"`);
  expect(text).not.toMatch(/timestamp/);
});

describe("npm can install the lockfile on all platforms", () => {
  it("because each package for one platform is optional", () => {
    expect(readPackages().filter(({ needsItsPlatform }) => needsItsPlatform)).toEqual([]);
  });

  it("and would not, if a package for one platform were required", () => {
    const lockfile = { packages: { "node_modules/a": { version: "1.0.0", os: ["linux"], cpu: ["x64"] } } };
    expect(readPackages(JSON.stringify(lockfile))).toEqual([expect.objectContaining({ needsItsPlatform: true })]);
  });
});
