/** Tests how the field mode leads a rep from door to door, in which order a territory's printed list has its doors, and house numbers. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Direction, directionOf, nearest, nextStop, placeOf, type Stop } from "../../console/src/field/street.ts";
import { houseOf, streetsOf } from "../../console/src/territories/walk.ts";

const at = (address1: string, address2: string | null = null, city = "Denver") =>
  placeOf({ address1, address2, city, zip: "80207" });

const door = (number: number, unit = "", street = "elm st"): Stop => ({
  key: `${street} ${number} ${unit}`,
  place: { street, number, unit },
  position: [number / 1e5, 0],
});

test.each([
  ["12 Elm St", null, 12, ""],
  ["12b Elm St", null, 12, "b"],
  [" 12  ELM  St. ", null, 12, ""],
  ["12 Elm St, Apt 3", null, 12, "apt 3"],
  ["12 Elm St #3", null, 12, "3"],
  ["12 Elm St", "Unit 9", 12, "unit 9"],
  ["Elm St 12 b", null, 12, "b"],
])("%s %s is a house number of Elm St", (address1, address2, number, unit) => {
  expect(at(address1, address2)).toEqual({ street: "elm st|denver|80207", number, unit });
});

test("a street of another city is another street, and a line without a number has no place", () => {
  expect(at("12 Elm St", null, "Boulder")?.street).not.toBe(at("12 Elm St")?.street);
  for (const line of ["Elm St", "", "12", "PO Box"]) expect(at(line)).toBeUndefined();
});

const walk = (doors: readonly Stop[], first: Stop, direction: Direction = 1): string[] => {
  const keys = [first.key];
  const visited = new Set(keys);
  for (let [from, way] = [first, direction]; ; ) {
    const step = nextStop(doors, from, way, ({ key }) => !visited.has(key));
    if (step === undefined) return keys;
    [from, way] = [step.stop, step.direction];
    visited.add(from.key);
    keys.push(from.key);
  }
};

test("a walk goes up one side of the street and down the other one, unit by unit", () => {
  const doors = [7, 1, 4, 2, 5, 8].map((number) => door(number)).concat(door(5, "apt 10"), door(5, "apt 9"));
  const up = ["1 ", "5 ", "5 apt 9", "5 apt 10", "7 ", "8 ", "4 ", "2 "].map((name) => `elm st ${name}`);
  expect(walk(doors, door(1))).toEqual(up);
  expect(walk(doors, door(2), -1)).toEqual(
    ["2 ", "1 ", "5 ", "5 apt 9", "5 apt 10", "7 ", "8 ", "4 "].map((name) => `elm st ${name}`),
  );
});

test("every walk visits each door once, and finishes a street before it leaves it", () => {
  const doors = fc.uniqueArray(
    fc.record({
      number: fc.integer({ min: 1, max: 30 }),
      unit: fc.constantFrom("", "b"),
      street: fc.constantFrom("a", "b"),
    }),
    { minLength: 1, maxLength: 25, selector: ({ number, unit, street }) => `${street} ${number} ${unit}` },
  );
  fc.assert(
    fc.property(doors, fc.constantFrom<Direction>(1, -1), (drawn, direction) => {
      const all = drawn.map(({ number, unit, street }) => door(number, unit, street));
      const keys = walk(all, all[0] ?? door(1), direction);
      expect([...keys].sort()).toEqual(all.map(({ key }) => key).sort());
      const streets = keys.map((key) => key.split(" ")[0]);
      expect(streets.filter((street, i) => i === 0 || street !== streets[i - 1]).length).toBeLessThanOrEqual(2);
      const sides = keys.map((key) => `${key.split(" ")[0]} ${Number(key.split(" ")[1]) % 2}`);
      // A walk along the doors may begin in the middle of one side of a street. Each street then has at most three stretches: this side to
      // its end, the other side, and the doors of the first side behind the beginning.
      expect(sides.filter((side, i) => i === 0 || side !== sides[i - 1]).length).toBeLessThanOrEqual(6);
    }),
  );
});

test("the other side of a street begins at its nearer end", () => {
  const doors = [3438, 3631, 3873, 4367].map((number) => door(number));
  expect(walk(doors, door(3438))).toEqual(["3438 ", "3631 ", "3873 ", "4367 "].map((name) => `elm st ${name}`));
});

test("without a street, the next door is the nearest one", () => {
  const [near, far] = [door(10, "", "x"), door(90, "", "y")];
  const unknown: Stop = { key: "?", place: undefined, position: [80 / 1e5, 0] };
  expect(nextStop([near, far], unknown, 1, () => true)?.stop).toBe(far);
  expect(nearest([near, far], undefined)?.stop).toBe(near);
  expect(nearest([], [0, 0])).toBeUndefined();
});

test("the direction of a walk comes from its last two doors on one side", () => {
  const places = [1, 3, 4].map((number) => door(number).place);
  expect(directionOf(places[0], places[1], -1)).toBe(1);
  expect(directionOf(places[1], places[0], 1)).toBe(-1);
  expect(directionOf(places[1], places[2], -1)).toBe(-1);
  expect(directionOf(places[1], door(1, "", "oak").place, -1)).toBe(1);
});

const listed = (address1: string) => ({ address: { address1, address2: null, city: "Denver", zip: "80203" } });

test("the odd side of a street is walked up and the even side down, and doors without a number come last", () => {
  const ofElmSt = ["8", "10", "11", "9", "9b", "2", "4 S"].map((number) => `${number} Elm St`);
  const lines = ["1 Oak St", "Mill House", ...ofElmSt];
  const shown = streetsOf([...lines.map(listed), { address: null }]).map(({ name, doors }) => [
    name,
    doors.map(({ address }) => address?.address1),
  ]);
  expect(shown).toEqual([
    ["elm st, denver, 80203", ["9 Elm St", "9b Elm St", "11 Elm St", "10 Elm St", "8 Elm St", "2 Elm St"]],
    ["oak st, denver, 80203", ["1 Oak St"]],
    ["s elm st, denver, 80203", ["4 S Elm St"]],
    [undefined, ["Mill House", undefined]],
  ]);
});

test.for([
  ["3283 S Acoma St", null, "3283"],
  ["12b Elm St", "Apt 3", "12b apt 3"],
  ["12 Elm St #4", null, "12 4"],
  ["Mill House", null, undefined],
] as const)("the list of a street names %s, %s as %s", ([address1, address2, text]) =>
  expect(houseOf({ address1, address2, city: "Denver", zip: "80203" })).toBe(text),
);
