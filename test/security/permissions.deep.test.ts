/**
 * Tests that docs/permissions.md lists exactly the rights in the templates, and cannot be written if reasons.ts has no reason for one of
 * them. The committed policies must have the rights in people.ts, and the deployer those of the documented `aws` commands.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { filled } from "../../infra/build/generated.ts";
import { people, persons, policyFile, policyOf, policyText, sizeOf } from "../../infra/security/people.ts";
import { DOCUMENT, documentedDeployment, permissionTables } from "../../infra/security/permissions.ts";
import { functionFiles } from "../../infra/synth.ts";
import { isFields, synthesized } from "../infra/template.ts";
import { actionsOfAws, observable, sorted } from "./documented-actions.ts";

const resources = (await synthesized(documentedDeployment())).stacks;
const all = { ...resources.data.Resources, ...resources.service.Resources };

describe("docs/permissions.md", () => {
  it("is what the templates grant; `npm run permissions` writes it", () => {
    const tables = permissionTables(all);
    expect(readFileSync(join(root, DOCUMENT), "utf8")).toBe(filled(DOCUMENT, tables).text);
    for (const file of functionFiles()) expect(tables.functions, file).toContain(`| \`${file}\` |`);
  });

  /** Returns the tables of docs/permissions.md for templates in which one role has one additional right. */
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

it("the `aws` commands of the documents use exactly the rights of the deployer, except those of `cdk`", () => {
  const used = actionsOfAws("deploy.md", ["cloudformation", "cognito-idp", "lambda", "ssm"]);
  // `cdk` needs only this right of the deployer, because it works with the roles that `cdk bootstrap` has made.
  expect(sorted(["sts:AssumeRole", ...used])).toEqual(sorted(observable("deployer")));
});

it("a policy is the committed file, has exactly the actions of its person, fits into a managed policy, and allows no action on everything but reads", () => {
  for (const person of persons) {
    expect(readFileSync(join(root, policyFile(person)), "utf8")).toBe(policyText(person));
    const { Statement } = policyOf(person);
    expect(sorted(Statement.flatMap(({ Action }) => Action))).toEqual(
      sorted(people[person].rights.flatMap(({ actions }) => actions)),
    );
    expect(readFileSync(join(root, DOCUMENT), "utf8")).toContain(
      `(policies/${person}.json), ${sizeOf(person)} characters: `,
    );
    expect(JSON.stringify(Statement)).not.toMatch(/"[a-z-]+:\*"/);
  }
});
