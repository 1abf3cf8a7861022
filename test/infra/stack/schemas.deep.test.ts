/** Compares the templates with AWS's public schemas of the resource types, as CloudFormation does before it creates a resource. */
import { expect, it } from "vitest";
import { capacityOf } from "../../../infra/settings/capacity.ts";
import type { DeployConfig } from "../../../infra/settings/config.ts";
import { propertyFaults } from "../../harness/cloud/spec.ts";
import { textsOf } from "../../harness/cloud/stack-templates.ts";
import { readTemplate } from "../../harness/cloud/template.ts";
import { largest, ownIdentity, synthesized } from "../template.ts";

const small: DeployConfig = { ...ownIdentity, capacity: capacityOf({ preset: "small" }) };

it.each<[string, DeployConfig]>([
  ["small with console", { ...small, console: {} }],
  ["production", ownIdentity],
  ["production with console and all other parts", largest],
])(
  "the templates of %s have no unknown, missing or wrong property, and refer to existing attributes only",
  async (_, config) => {
    const template = await synthesized(config);
    const faults = Object.values(textsOf(template, config)).flatMap((text) =>
      Object.entries(readTemplate(text, true).Resources).flatMap(([id, { Type, Properties }]) =>
        propertyFaults(Type, Properties).map((fault) => `${id}: ${fault}`),
      ),
    );
    expect(faults).toEqual([]);
  },
);

it("a fault within a property is found", () => {
  const properties = { AlarmName: { Ref: "Name" }, EvaluationPeriods: 1, Metrics: [{ Expression: "1" }] };
  expect(propertyFaults("AWS::CloudWatch::Alarm", properties)).toEqual(["Property Metrics/0/Id is required"]);
  expect(propertyFaults("AWS::SQS::Queue", { Visibility: 1, DelaySeconds: "soon" })).toEqual([
    "Encountered unsupported property Visibility",
    "Value of property DelaySeconds must be of type Number",
  ]);
});

const queue = { Type: "AWS::SQS::Queue" };

it.each([
  [{ A: { ...queue, DependsOn: "B" } }, "Unresolved resource dependencies [B]"],
  [
    { A: queue, B: { ...queue, Properties: { QueueName: { "Fn::GetAtt": ["A", "Name"] } } } },
    "does not support attribute type Name",
  ],
  [
    { A: { ...queue, DependsOn: "B" }, B: { ...queue, DependsOn: "A" } },
    "Circular dependency between resources: [A, B]",
  ],
  [{ A: { Type: "AWS::SQS::Que" } }, "Unrecognized resource types: [AWS::SQS::Que]"],
  [{ A: { ...queue, Deletion: "Retain" } }, "Template format error"],
  [Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`Q${i}`, queue])), "501, is greater than 500"],
  [{ A: { ...queue, Properties: { QueueName: "x".repeat(1_000_000) } } }, "exceeds the maximum of 1000000"],
])("a fault of a template is found, %#", (Resources, fault) => {
  expect(() => readTemplate(JSON.stringify({ Resources }), true)).toThrow(fault);
});
