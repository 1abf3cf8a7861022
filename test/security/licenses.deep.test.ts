/** Tests which licenses, installation scripts and platforms of packages are allowed. */
import { describe, expect, it } from "vitest";
import { faultsOf, type Package, readPackages } from "../../infra/security/licenses.ts";

const one: Package = {
  ...{ name: "a", version: "1.0.0", license: "MIT" },
  ...{ hasInstallScript: false, dev: false, link: false, optional: false },
};
const faults = (change: Partial<Package>) => faultsOf([{ ...one, ...change }]);

describe("the licenses of the lockfile", () => {
  it("are all allowed, and package.json names each package with a script for its installation", () => {
    const packages = readPackages();
    expect(packages.length).toBeGreaterThan(100);
    expect(faultsOf(packages)).toEqual([]);
  });

  it.each([
    ["GPL-3.0-only", false],
    ["AGPL-3.0-or-later", true],
    ["(none)", false],
    ["UNLICENSED", false],
    ["MIT AND GPL-3.0-only", false],
    // Under this license, changes of the code would have to be published, so functions must not contain such code.
    ["MPL-2.0", false],
  ])("%s is a fault", (license, dev) => {
    expect(faults({ license, dev })).toEqual([expect.stringContaining("is not allowed")]);
  });

  it.each([
    ["ISC", false],
    ["(MIT OR GPL-3.0-or-later)", false],
    ["MPL-2.0", true],
  ])("%s is allowed", (license, dev) => {
    expect(faults({ license, dev })).toEqual([]);
  });

  it("do not excuse a script that npm would run at the installation, or a required package for one platform", () => {
    expect(faults({ hasInstallScript: true })).toEqual([expect.stringContaining("has a script for its installation")]);
    expect(faults({ name: "esbuild", hasInstallScript: true })).toEqual([]);
    expect(faults({ cpu: ["x64"] })).toEqual([expect.stringContaining("npm cannot install it on each platform")]);
    expect(faults({ os: ["linux"], optional: true })).toEqual([]);
  });
});
