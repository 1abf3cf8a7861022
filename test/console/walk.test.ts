/** Tests the order in which the list of a territory prints its doors, and the house numbers that it reads from addresses. */
import { expect, test } from "vitest";
import { houseOf, streetsOf } from "../../console/src/territories/walk.ts";

const at = (address1: string) => ({ address: { address1, address2: null, city: "Denver", zip: "80203" } });

test("the odd side of a street is walked up and the even side down, and doors without a number come last", () => {
  const ofElmSt = ["8", "10", "11", "9", "9b", "2", "4 S"].map((number) => `${number} Elm St`);
  const lines = ["1 Oak St", "Mill House", ...ofElmSt];
  const shown = streetsOf([...lines.map(at), { address: null }]).map(({ name, doors }) => [
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
