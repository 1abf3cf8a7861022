/** Tests the order in which the doors of a territory are printed. */
import { expect, test } from "vitest";
import { streetsOf } from "../../console/src/territories/walk.ts";

const at = (address1: string) => ({ address: { address1, address2: null, city: "Denver", zip: "80203" } });

test("the odd side of a street is walked up and the even side down, and doors without a number come last", () => {
  const lines = [
    "8 Elm St",
    "10 Elm St",
    "1 Oak St",
    "Mill House",
    "11 Elm St",
    "9 Elm St",
    "9b Elm St",
    "2 Elm St",
    "4 S Elm St",
  ];
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
