/** Tests how a plan is committed: when the verb is called again, which error a failed condition has, and what runs after the commit. */
import { expect, test } from "vitest";
import type { Item, Write } from "#shared/db/expression.ts";
import { carryOut, type Plan } from "#shared/db/plan.ts";
import { ConditionFailed } from "#shared/errors.ts";

const own: Write = { remove: { pk: "own", sk: "1" }, orThrow: () => new Error("own error") };
const plain: Write = { remove: { pk: "plain", sk: "1" } };
const second: Write = { remove: { pk: "second", sk: "1" }, orThrow: () => new Error("second error") };

/** Commits three writes. In the first attempt, the writes at the positions `failing` fail. Counts calls of the verb and of `after`. */
async function outcome(failing: readonly number[], more: Partial<Plan<string>> = {}) {
  let [calls, commits, after] = [0, 0, 0];
  const verb = async (): Promise<Plan<string>> => ({
    writes: [own, plain, second],
    answer: `answer ${++calls}`,
    after: async () => ++after,
    ...more,
  });
  const commit = async (): Promise<void> => {
    if (++commits === 1) throw new ConditionFailed(failing.map((index) => ({ index, item: undefined })));
  };
  const end = await carryOut(verb, commit).then(
    ({ answer }) => answer,
    (error: unknown) => String(error),
  );
  return { end, calls, after };
}

test.each([
  ["has an error of its own", [0], { end: "Error: own error", calls: 1, after: 0 }],
  ["is the first of two with errors", [0, 2], { end: "Error: own error", calls: 1, after: 0 }],
  ["has no error: the verb runs again", [1], { end: "answer 2", calls: 2, after: 1 }],
  ["is one of two, and the other has no error: the verb runs again", [0, 1], { end: "answer 2", calls: 2, after: 1 }],
  ["is of no planned write, such as a receipt: the verb runs again", [3], { end: "answer 2", calls: 2, after: 1 }],
])("a failed condition that %s", async (_, failing, expected) => {
  expect(await outcome(failing)).toEqual(expected);
});

test("if a plan is refused, its alternative is committed, and only the work that follows the alternative runs", async () => {
  let others = 0;
  const other = { writes: [], after: async () => ++others };
  const refused = async ({ failed }: ConditionFailed) => ({ ...other, answer: `instead of ${failed[0]?.index}` });
  expect(await outcome([0], { refused })).toEqual({ end: "instead of 0", calls: 1, after: 0 });
  expect(others).toBe(1);
  expect(await outcome([0], { refused: () => undefined })).toEqual({ end: "Error: own error", calls: 1, after: 0 });
});

test("a write chooses its error by the stored item of its failed condition", async () => {
  const write: Write = {
    ...own,
    orThrow: (stored) => new Error(stored === undefined ? "nothing" : String(stored.name)),
  };
  const verb = async (): Promise<Plan<number>> => ({ writes: [write], answer: 1 });
  const refusal = (item: Item | undefined) =>
    carryOut(verb, () => Promise.reject(new ConditionFailed([{ index: 0, item }])));
  await expect(refusal({ name: "full" })).rejects.toThrow("full");
  await expect(refusal(undefined)).rejects.toThrow("nothing");
});

test("any other error of the commit is thrown at once", async () => {
  const broken = new Error("no answer");
  const verb = async (): Promise<Plan<number>> => ({ writes: [plain], answer: 1 });
  await expect(carryOut(verb, () => Promise.reject(broken))).rejects.toBe(broken);
});
