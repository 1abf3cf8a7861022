/** Adds the rule packs of cdk-nag, and accepts findings of these rules with a reason. */
import { type App, Validations } from "aws-cdk-lib/core";
import type { IConstruct } from "constructs";

/**
 * Adds the rule packs. Each finding fails the synthesis unless `accept` has named it. The packs are loaded only here, because a local
 * start does not use them.
 */
export async function addRulePacks(app: App): Promise<void> {
  const { AwsSolutionsChecks, ServerlessChecks } = await import("cdk-nag");
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
}

/** Accepts findings at this resource only. `reasons` maps the name of a rule, for example `AwsSolutions-S1`, to the reason. */
export function accept(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}
