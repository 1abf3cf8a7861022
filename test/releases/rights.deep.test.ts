/** Tests that `npm run release -- check` finds each removed right that code of the last release needs during a gradual rollout. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { gradualRights, RightsByFile, removedRights } from "../../infra/release/gradual-rights.ts";
import { packageVersion, recorded } from "../../infra/release/releases.ts";
import { lostRights, rightsOf } from "../../infra/release/rights.ts";

const policies = (...Statement: object[]) => [{ PolicyName: "access", PolicyDocument: { Statement } }];
const reading = (keys: readonly string[], more: object = {}) => ({
  Effect: "Allow",
  Action: ["dynamodb:GetItem", "dynamodb:Query"],
  Resource: { "Fn::GetAtt": ["Table", "Arn"] },
  Condition: {
    "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys },
    Null: { "dynamodb:LeadingKeys": "false" },
  },
  ...more,
});
const sending = { Effect: "Allow", Action: "sqs:SendMessage", Resource: "arn:aws:sqs:eu-west-1:1:q" };
const before = policies(reading(["a", "b"]), sending);
const both = ["dynamodb:GetItem", "dynamodb:Query"];
const { Null } = reading([]).Condition;

test.each([
  ["nothing changes", before, []],
  ["the role gets more", policies(reading(["b", "a", "c"]), sending, { ...sending, Resource: "*" }), []],
  ["all keys are allowed", policies({ ...reading([]), Condition: { Null } }, sending), []],
  ["an action is gone", policies(reading(["a", "b"], { Action: "dynamodb:Query" }), sending), ["dynamodb:GetItem"]],
  ["a pattern of keys is gone", policies(reading(["a"]), sending), both],
  // IAM allows a batch request only if one statement allows all keys in it. Two statements do not replace one with both patterns.
  ["the common statement of two patterns is gone", policies(reading(["a"]), reading(["b"]), sending), both],
  ["the resource is another", policies(reading(["a", "b"], { Resource: "other" }), sending), both],
  ["a statement is gone", policies(reading(["a", "b"])), ["sqs:SendMessage"]],
  ["all are gone", [], [...both, "sqs:SendMessage"]],
])("the lost rights are found if %s", (_, after, expected) => {
  expect(lostRights(rightsOf(before), rightsOf(after)).map(({ action }) => action)).toEqual(expected);
});

test("a release is refused if a function lost a right, and not if a function no longer exists", async () => {
  const now = await gradualRights();
  expect(Object.keys(now)).toEqual(expect.arrayContaining(["authorize", "events/publish", "prospects/list"]));
  expect(removedRights(RightsByFile.parse(recorded("rights")), now)).toEqual([]);
  const more = { action: "dynamodb:DeleteItem", on: "Table", keys: ["C#*"] };
  const earlier = { ...now, "prospects/list": [...(now["prospects/list"] ?? []), more], gone: [more] };
  expect(removedRights(earlier, now)).toEqual([
    "prospects/list loses the right dynamodb:DeleteItem on Table for keys C#*",
  ]);
});

test("CHANGELOG.md begins with the version of package.json, or with unreleased changes", () => {
  const [, title] = /^## \[(.*?)\]/m.exec(readFileSync(join(root, "CHANGELOG.md"), "utf8")) ?? [];
  expect([packageVersion(), "Unreleased"]).toContain(title);
});
