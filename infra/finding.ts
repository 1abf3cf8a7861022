/** A finding of the rule packs that stays, with its reason, at the resource that it concerns and at no other. */
import { Validations } from "aws-cdk-lib/core";
import type { IConstruct } from "constructs";

/** `reasons` by rule, e.g. `AwsSolutions-S1`. */
export function accept(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}
