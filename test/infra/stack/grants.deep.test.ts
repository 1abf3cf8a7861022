/** Tests the check of unused grants: it reports a grant unless a reason excuses it, and every reason excuses an existing grant. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { assertGrantsAreUsed, excused, namedTests, staleReasons, unusedGrants } from "../../harness/grants.ts";

const unused = unusedGrants({});
const usesOfAll = Object.fromEntries(
  [...Map.groupBy(unused, ({ file }) => file)].map(([file, grants]) => [file, grants.map(({ grant }) => grant)]),
);

test("every grant that no call uses is reported, unless a reason excuses the grant", () => {
  expect(unused).toContainEqual({ file: "prospects/delete", grant: "PutItem prospects" });
  expect(unused.some((one) => excused.some(({ file, grant }) => one.file === file && one.grant === grant))).toBe(false);
  expect(() => assertGrantsAreUsed(usesOfAll)).not.toThrow();
  const { "prospects/delete": some = [], ...others } = usesOfAll;
  const rest = some.filter((grant) => grant !== "PutItem prospects");
  expect(() => assertGrantsAreUsed({ ...others, "prospects/delete": rest })).toThrow(
    "prospects/delete has the grant PutItem prospects, which no API test uses",
  );
});

test("every reason excuses a grant that still exists", () => {
  expect(staleReasons()).toEqual([]);
});

test("every test that a reason names exists", () => {
  expect(namedTests().length).toBeGreaterThan(5);
  expect(namedTests().filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
