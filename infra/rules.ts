/** cdk-nag's rule packs, and the findings of theirs that the project accepts with a reason. */
import { type App, Validations } from "aws-cdk-lib/core";
import type { IConstruct } from "constructs";

/** Each finding of the packs fails the synthesis, unless `accept` has named it. Loads the packs only here: a local start runs without them. */
export async function addRulePacks(app: App): Promise<void> {
  const { AwsSolutionsChecks, ServerlessChecks } = await import("cdk-nag");
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
}

/** Accepts findings at this resource alone. `reasons` maps a rule, e.g. `AwsSolutions-S1`, to the reason. */
export function accept(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}
