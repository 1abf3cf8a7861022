/** Tests that the console edits the filter of a webhook registration without changing which events the filter matches. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  conditionsIn,
  conditionsOf,
  conditionsText,
  filterOf,
  operatorNames,
} from "../../console/src/webhooks/conditions.ts";

const value = fc.oneof(
  fc.constantFrom("Sold", "Not Home", "a, b", " a", "", "1"),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.array(fc.constantFrom("Sold", "Not Home", "a, b"), { maxLength: 3 }),
  fc.array(fc.oneof(fc.integer(), fc.constant("1")), { maxLength: 3 }),
);
const path = fc.constantFrom("newStatus.value", "newStatus.id", "prospect.name");

test("the conditions of a filter make the same filter, unless the form cannot show them", () => {
  fc.assert(
    fc.property(fc.dictionary(path, value, { minKeys: 1 }), (filter) => {
      const conditions = conditionsOf(filter);
      if (conditions !== undefined) expect(filterOf(conditions)).toEqual({ filter, fault: undefined });
    }),
  );
});

test.for([
  [null, []],
  [{ "newStatus.value": "Sold" }, [["newStatus.value", "is", "Sold"]]],
  [{ "newStatus.value": ["Sold", "Not Home"] }, [["newStatus.value", "any", "Sold, Not Home"]]],
  [
    { "newStatus.id": 133, done: false },
    [
      ["newStatus.id", "number", "133"],
      ["done", "no", ""],
    ],
  ],
  [{ "newStatus.id": [133, 134] }, [["newStatus.id", "anyNumber", "133, 134"]]],
  [{ oldStatus: null }, [["oldStatus", "empty", ""]]],
  // A nested object matches the same events as a path with dots, so the console shows it as a path.
  [{ newStatus: { value: "Sold" } }, [["newStatus.value", "is", "Sold"]]],
] as const)("the form shows %j", ([filter, expected]) => {
  const conditions = conditionsOf(filter)?.map(({ path, operator, typed }) => [path, operator, typed]);
  expect(conditions).toEqual(expected);
});

test.for([
  { "newStatus.value": "a, b", done: [] },
  { "newStatus.value": ["a, b"] },
  { mixed: ["a", 1] },
  { newStatus: {} },
  { a: { b: 1 }, "a.b": 2 },
])("the form cannot show %j", (filter) => expect(conditionsOf(filter)).toBeUndefined());

test("a draft of conditions has the same conditions", () => {
  const condition = fc.record({ path: fc.string(), operator: fc.constantFrom(...operatorNames), typed: fc.string() });
  fc.assert(
    fc.property(fc.array(condition), (conditions) => {
      expect(conditionsIn(conditionsText(conditions))).toEqual(conditions);
    }),
  );
});
