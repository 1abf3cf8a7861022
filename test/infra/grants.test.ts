/** The comparison of grants with their use: what it names, and that its reasons are about something. */
import { expect, test } from "vitest";
import { assertGrantsAreUsed, excused, staleReasons, unusedGrants } from "../harness/grants.ts";

const unused = unusedGrants({});
const usesOfAll = Object.fromEntries(
  [...Map.groupBy(unused, ({ file }) => file)].map(([file, grants]) => [file, grants.map(({ grant }) => grant)]),
);

test("every grant is named that no call uses, unless it has a reason", () => {
  expect(unused).toContainEqual({ file: "prospects/delete", grant: "PutItem prospects" });
  expect(unused.some((one) => excused.some(({ file, grant }) => one.file === file && one.grant === grant))).toBe(false);
  expect(() => assertGrantsAreUsed(usesOfAll)).not.toThrow();
  const { "prospects/delete": some = [], ...others } = usesOfAll;
  const rest = some.filter((grant) => grant !== "PutItem prospects");
  expect(() => assertGrantsAreUsed({ ...others, "prospects/delete": rest })).toThrow(
    "prospects/delete has the grant PutItem prospects, which no API test uses",
  );
});

test("no reason is left for what nobody is granted any more", () => {
  expect(staleReasons()).toEqual([]);
});
