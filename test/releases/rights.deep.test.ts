/** Tests that a release removes no right that the code of the last release still uses while CodeDeploy replaces functions step by step. */
import { beforeAll, describe, expect, test } from "vitest";
import { gradualRights, RightsByFile, removedRights } from "../../infra/release/gradual-rights.ts";
import { recorded } from "../../infra/release/releases.ts";
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
const lost = (before: unknown, after: unknown) =>
  lostRights(rightsOf(before), rightsOf(after)).map(({ action }) => action);

describe("a right is lost", () => {
  const before = policies(reading(["a", "b"]), sending);

  test.each([
    ["if nothing changes", before, []],
    ["if the role gets more", policies(reading(["b", "a", "c"]), sending, { ...sending, Resource: "*" }), []],
    [
      "if all keys are allowed",
      policies({ ...reading([]), Condition: { Null: reading([]).Condition.Null } }, sending),
      [],
    ],
  ])("not %s", (_, after, expected) => {
    expect(lost(before, after)).toEqual(expected);
  });

  const both = ["dynamodb:GetItem", "dynamodb:Query"];
  test.each([
    ["an action", policies(reading(["a", "b"], { Action: "dynamodb:Query" }), sending), ["dynamodb:GetItem"]],
    ["a pattern of keys", policies(reading(["a"]), sending), both],
    // IAM allows a batch request only if one statement allows all of its keys. Two statements with one pattern of keys each therefore do
    // not replace a statement with both patterns.
    ["the common statement of two patterns", policies(reading(["a"]), reading(["b"]), sending), both],
    ["the resource", policies(reading(["a", "b"], { Resource: "other" }), sending), both],
    ["the statement", policies(reading(["a", "b"])), ["sqs:SendMessage"]],
    ["all", [], [...both, "sqs:SendMessage"]],
  ])("with %s", (_, after, expected) => {
    expect(lost(before, after)).toEqual(expected);
  });
});

describe("this release", () => {
  let now: RightsByFile;
  beforeAll(async () => {
    now = await gradualRights();
  });

  test("keeps the rights of the last release", () => {
    expect(removedRights(RightsByFile.parse(recorded("rights")), now)).toEqual([]);
    expect(Object.keys(now)).toEqual(expect.arrayContaining(["authorize", "events/publish", "prospects/list"]));
  });

  test("is refused if a function lost a right, and not if a function no longer exists", () => {
    const more = { action: "dynamodb:DeleteItem", on: "Table", keys: ["C#*"] };
    const before = { ...now, "prospects/list": [...(now["prospects/list"] ?? []), more], gone: [more] };
    expect(removedRights(before, now)).toEqual([
      "prospects/list loses the right dynamodb:DeleteItem on Table for keys C#*",
    ]);
  });
});
