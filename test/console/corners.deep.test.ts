/** Tests that the console counts the corners of a polygon, and reads them from the text that a user writes. */
import { expect, test } from "vitest";
import { FieldError } from "../../console/src/api/faults.ts";
import { cornersIn, ringOf, textOf } from "../../console/src/territories/corners.ts";

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
