/** cdk-nag's rule packs over the app. A finding is mended or acknowledged with its reason where the resource is made. */
import { type App, Validations } from "aws-cdk-lib/core";
import { AwsSolutionsChecks, ServerlessChecks } from "cdk-nag";

export function addRulePacks(app: App): void {
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
}
