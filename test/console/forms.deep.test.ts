/** Tests that forms change neither what the filter of a webhook registration matches, nor the corners of a polygon. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { FieldError } from "../../console/src/api/faults.ts";
import { cornersIn, ringOf, textOf } from "../../console/src/territories/corners.ts";
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

const corners = [
  [-105, 39.7],
  [-104.9, 39.7],
  [-104.9, 39.8],
];

test.for([
  [[], 0],
  [corners, 3],
  [[...corners, [-105, 39.7]], 3],
] as const)("%j has %d corners", ([polygon, count]) => expect(cornersIn(polygon.map((one) => [...one]))).toBe(count));

test("the text of the corners gives the same corners, with or without blank lines", () => {
  expect(ringOf(textOf(corners))).toEqual(corners);
  expect(ringOf(`\n${textOf(corners).replaceAll("\n", "\n \n")}\n`)).toEqual(corners);
});

test.for([
  ["\n\n-105, 39.7\n-104.9\n-104.9, 39.8", "Write a longitude and a latitude in line 4, such as -104.99, 39.74."],
  [
    "-105, 39.7\n\n39.7, -104.9\n-104.9, 39.8",
    "The latitude in line 3 must be from -90 to 90. The longitude comes first.",
  ],
  ["181, 1\n1, 1\n2, 2", "The longitude in line 1 must be from -180 to 180."],
  ["1, 1\n\n2, 2", "Write at least three corners."],
] as const)("the text %j has the fault: %s", ([text, message]) => {
  const fault = ringOf(text);
  expect(fault).toBeInstanceOf(FieldError);
  expect(fault).toMatchObject({ message });
});
