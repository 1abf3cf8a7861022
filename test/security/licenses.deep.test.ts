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
    ["GPL-3.0-only", { dev: false, isAllowed: false }],
    ["AGPL-3.0-or-later", { dev: true, isAllowed: false }],
    ["(none)", { dev: false, isAllowed: false }],
    ["UNLICENSED", { dev: false, isAllowed: false }],
    ["MIT AND GPL-3.0-only", { dev: false, isAllowed: false }],
    // Under this license, changes of the code would have to be published, so functions must not contain such code.
    ["MPL-2.0", { dev: false, isAllowed: false }],
    ["MPL-2.0", { dev: true, isAllowed: true }],
    ["ISC", { dev: false, isAllowed: true }],
    ["(MIT OR GPL-3.0-or-later)", { dev: false, isAllowed: true }],
  ])("have a fault unless it is allowed: %s, %j", (license, { dev, isAllowed }) => {
    expect(faults({ license, dev })).toEqual(isAllowed ? [] : [expect.stringContaining("is not allowed")]);
  });

  it("do not excuse a script that npm would run at the installation, or a required package for one platform", () => {
    expect(faults({ hasInstallScript: true })).toEqual([expect.stringContaining("has a script for its installation")]);
    expect(faults({ name: "esbuild", hasInstallScript: true })).toEqual([]);
    expect(faults({ cpu: ["x64"] })).toEqual([expect.stringContaining("npm cannot install it on each platform")]);
    expect(faults({ os: ["linux"], optional: true })).toEqual([]);
  });
});
