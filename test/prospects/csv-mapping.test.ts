/** Tests the mapping of an import, which assigns headers of the file to columns of the import. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { MappingText, readHeader } from "#shared/prospects/csv/header.ts";

test("the error about a missing header shows the header as the mapping spells it", () => {
  const mapping = { "Fulll Name": "notes" } as const;
  expect(() => readHeader(["name", "Full name"], { mapping })).toThrow('the header "Fulll Name", which');
});

test("a mapping of the header __proto__ is refused", () => {
  const { error } = z.safeParse(MappingText, '{"Name":"name","__proto__":"notes"}');
  expect(error?.issues).toMatchObject([{ message: "must not name the header __proto__" }]);
});

test("a mapping with the same header in different case is refused, and the error has both headers", () => {
  const { error } = z.safeParse(MappingText, '{"Full Name":"name","x":null," FULL name":"notes"}');
  expect(error?.issues).toMatchObject([
    { message: 'must not have both "Full Name" and " FULL name", because headers are compared without case' },
  ]);
});
