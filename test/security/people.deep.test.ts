/**
 * Tests that the committed policies are the IAM rights in infra/security/people.ts, and that the deployer has exactly the rights of the
 * documented `aws` commands.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { people, persons, policyFile, policyOf, policyText, sizeOf } from "../../infra/security/people.ts";
import { actionsOfAws, observable, sorted } from "./documented-actions.ts";

test("the `aws` commands of the documents use exactly the rights of the deployer, except those of `cdk`", () => {
  const all = [...actionsOfAws("deploy.md", ["cloudformation", "cognito-idp", "lambda", "ssm"])];
  // `cdk` needs only this right of the deployer, because it works with the roles that `cdk bootstrap` has made.
  expect(sorted(["sts:AssumeRole", ...all])).toEqual(sorted(observable("deployer")));
});

test("a policy is the committed file, has exactly the actions of its person, fits into a managed policy, and allows no action on everything but reads", () => {
  for (const person of persons) {
    expect(readFileSync(join(root, policyFile(person)), "utf8")).toBe(policyText(person));
    const { Statement } = policyOf(person);
    expect(sorted(Statement.flatMap(({ Action }) => Action))).toEqual(
      sorted(people[person].rights.flatMap(({ actions }) => actions)),
    );
    expect(readFileSync(join(root, "docs/permissions.md"), "utf8")).toContain(
      `(policies/${person}.json), ${sizeOf(person)} characters: `,
    );
    expect(JSON.stringify(Statement)).not.toMatch(/"[a-z-]+:\*"/);
  }
});
