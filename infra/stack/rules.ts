/** Adds the security rules of cdk-nag to the stacks, and accepts single findings with a reason. */
import { type App, Validations } from "aws-cdk-lib/core";
import type { IConstruct } from "constructs";

/**
 * Adds the rule packs. The synthesis then fails if a rule finds something that `accept` has not accepted. cdk-nag is imported only in this
 * function, because a start of the local service imports this file but does not check the rules.
 */
export async function addRulePacks(app: App): Promise<void> {
  const { AwsSolutionsChecks, ServerlessChecks } = await import("cdk-nag");
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
}

/** Accepts findings for this resource only. `reasons` maps a rule, for example `AwsSolutions-S1`, to the reason. */
export function accept(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}
