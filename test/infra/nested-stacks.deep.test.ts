/** Tests that a template without nesting has the same resources and references as the nested stacks. */
import { expect, test } from "vitest";
import { withoutNesting } from "../../infra/nested-stacks.ts";

const role = {
  Type: "AWS::IAM::Role",
  Properties: { Resource: { "Fn::Join": ["", [{ Ref: "Given" }, "/*"]] } },
};
const nested = {
  Parameters: { Given: { Type: "String" } },
  Resources: { Role: role },
  Outputs: { Arn: { Value: { "Fn::GetAtt": ["Role", "Arn"] } } },
};
const queue = { Type: "AWS::SQS::Queue", Properties: {} };
const stack = {
  Type: "AWS::CloudFormation::Stack",
  Properties: { Parameters: { Given: { "Fn::GetAtt": ["Queue", "Arn"] } } },
};
const user = {
  Type: "AWS::Lambda::Function",
  Properties: { Role: { "Fn::GetAtt": ["Roles", "Outputs.Arn"] } },
  DependsOn: ["Queue", "Roles"],
};

test("references go directly to the resources, through parameters and outputs", () => {
  const parent = { Resources: { Queue: queue, Roles: stack, User: user } };
  expect(withoutNesting(parent, () => nested)).toMatchObject({
    Resources: {
      Queue: queue,
      User: { ...user, Properties: { Role: { "Fn::GetAtt": ["Role", "Arn"] } }, DependsOn: ["Queue"] },
      Role: {
        ...role,
        Properties: { Resource: { "Fn::Join": ["", [{ "Fn::GetAtt": ["Queue", "Arn"] }, "/*"]] } },
      },
    },
  });
});

test("two resources with the same logical id are refused", () => {
  const parent = { Resources: { Role: role, Roles: stack } };
  expect(() => withoutNesting(parent, () => nested)).toThrow("Role is a resource of a nested stack and of its parent");
});
