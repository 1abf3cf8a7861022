/** Lets CodeDeploy replace functions step by step, and undo the deployment if an alarm goes off in the five minutes of the first step. */
import { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { CfnApplication, CfnDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { CfnAlias, type Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { managedRole } from "./rules.ts";

/** The alias points to the current version, and during a deployment also to the new one. */
const ALIAS = "live";

/** The new version gets 10 % of the invocations for 5 minutes, and then all. */
const STEPS = "CodeDeployDefault.LambdaCanary10Percent5Minutes";

/**
 * The functions for daily work in the field, and those that turn changes into webhooks and indexes. Each needs three additional resources,
 * and a stack has at most 500, so all other functions are replaced at once. A change of this pattern changes the ARN by which API Gateway
 * invokes a function. API Gateway may then be unable to invoke the function for some seconds of the deployment.
 */
const gradual =
  /^(?:authorize$|events\/(?:publish|deliver)$|index\/flush$|(?:prospects|notes|appointments)\/(?!(?:bulk|export|import|template)$))/;

export const isGradual = (file: string): boolean => gradual.test(file);

/** The alarms that undo a deployment. CodeDeploy accepts at most ten. */
const errorAlarms: ReadonlySet<string> = new Set(["ServerErrors", "Errors", "ItemErrors"]);

/**
 * Returns undefined if the function is always replaced at once. `rollout=at-once` and the preset `small` have the aliases, too. Otherwise a
 * change of these settings would change the ARNs, and API Gateway would have no right to the new ARN for a part of the deployment.
 */
export function aliasOf(deployed: LambdaFunction, file: string, ready: number | undefined): string | undefined {
  if (!isGradual(file)) return undefined;
  return new CfnAlias(deployed, "Live", {
    functionName: deployed.functionName,
    functionVersion: deployed.currentVersion.version,
    name: ALIAS,
    ...(ready !== undefined && { provisionedConcurrencyConfig: { provisionedConcurrentExecutions: ready } }),
  }).ref;
}

/** Lets CodeDeploy move the aliases. Call this last, because it searches `scope` for all functions and alarms of the stack. */
export function moveStepByStep(scope: Construct): void {
  const home = new Construct(scope, "Rollout");
  const created = scope.node.findAll();
  const alarms = created.filter((child) => child instanceof Alarm && errorAlarms.has(child.node.id));
  const application = new CfnApplication(home, "Application", { computePlatform: "Lambda" });
  const reason =
    "AWS maintains this policy for exactly this purpose. It allows CodeDeploy to move aliases and to read alarms.";
  const role = managedRole(home, "Role", "codedeploy", "AWSCodeDeployRoleForLambdaLimited", reason);
  for (const alias of created.filter((child) => child instanceof CfnAlias)) {
    const group = new CfnDeploymentGroup(alias, "Deployment", {
      applicationName: application.ref,
      serviceRoleArn: role.roleArn,
      deploymentConfigName: STEPS,
      deploymentStyle: { deploymentType: "BLUE_GREEN", deploymentOption: "WITH_TRAFFIC_CONTROL" },
      alarmConfiguration: {
        enabled: true,
        alarms: alarms.flatMap((child) => (child instanceof Alarm ? [{ name: child.alarmName }] : [])),
      },
      autoRollbackConfiguration: {
        enabled: true,
        events: ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"],
      },
    });
    // Without this policy, CloudFormation would move the alias at once.
    alias.cfnOptions.updatePolicy = {
      codeDeployLambdaAliasUpdate: { applicationName: application.ref, deploymentGroupName: group.ref },
    };
  }
}
