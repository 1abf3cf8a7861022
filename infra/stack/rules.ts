/** Adds the security rules of cdk-nag, and accepts single findings with a reason. */
import { ManagedPolicy, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { type App, Validations } from "aws-cdk-lib/core";
import type { Construct, IConstruct } from "constructs";

/** Makes the synthesis fail for a finding that is not accepted. Imports cdk-nag only here, because the local service does not need it. */
export async function addRulePacks(app: App): Promise<void> {
  const { AwsSolutionsChecks, ServerlessChecks } = await import("cdk-nag");
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
}

/** Accepts findings for this resource only. `reasons` maps a rule, for example `AwsSolutions-S1`, to the reason. */
export function accept(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}

/** Creates a role `id` with a policy of AWS, which may allow more than the role needs. `reason` says why that is accepted. */
export function managedRole(
  home: Construct,
  id: string,
  service: "apigateway" | "backup" | "codedeploy",
  policy: string,
  reason: string,
): Role {
  const name = `service-role/${policy}`;
  const role = new Role(home, id, {
    assumedBy: new ServicePrincipal(`${service}.amazonaws.com`),
    managedPolicies: [ManagedPolicy.fromAwsManagedPolicyName(name)],
  });
  accept(role, { [`AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/${name}]`]: reason });
  return role;
}
