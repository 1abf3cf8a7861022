/** Tests that docs/permissions.md lists exactly the rights in the templates, and that a right without a reason is refused. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { filled } from "../../infra/build/generated.ts";
import { DOCUMENT, documentedDeployment, permissionTables } from "../../infra/security/permissions.ts";
import { functionFiles } from "../../infra/synth.ts";
import { isFields, synthesized } from "../infra/template.ts";

const resources = (await synthesized(documentedDeployment())).stacks;
const all = { ...resources.data.Resources, ...resources.service.Resources };

describe("docs/permissions.md", () => {
  it("is what the templates grant; `npm run permissions` writes it", () => {
    const tables = permissionTables(all);
    expect(readFileSync(join(root, DOCUMENT), "utf8")).toBe(filled(DOCUMENT, tables).text);
    for (const file of functionFiles()) expect(tables.functions, file).toContain(`| \`${file}\` |`);
  });

  /** Returns the tables for templates in which one role has one additional right. */
  function tablesWith(Action: string, Resource: unknown) {
    const changed = structuredClone(all);
    const role = Object.values(changed).find(({ Type, Properties }) => {
      return Type === "AWS::IAM::Role" && Array.isArray(Properties.Policies);
    });
    const policies = role?.Properties.Policies;
    const policy: unknown = Array.isArray(policies) ? policies[0] : undefined;
    if (!isFields(policy) || !isFields(policy.PolicyDocument) || !Array.isArray(policy.PolicyDocument.Statement)) {
      throw new Error("the role has no policy");
    }
    policy.PolicyDocument.Statement.push({ Effect: "Allow", Action, Resource });
    return permissionTables(changed);
  }

  it("cannot be written for a right without a reason", () => {
    expect(() => tablesWith("ec2:RunInstances", "*")).toThrow(
      "ec2:RunInstances has no reason in infra/security/reasons.ts",
    );
  });

  it("cannot be written for a resource without a name", () => {
    expect(() => tablesWith("sqs:SendMessage", { "Fn::GetAtt": ["NewQueue", "Arn"] })).toThrow(
      '{"Fn::GetAtt":["NewQueue","Arn"]} has no name in infra/security/permissions.ts',
    );
  });
});
