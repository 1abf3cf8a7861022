/**
 * Lets CodeDeploy replace functions step by step. The new version gets a tenth of the invocations for five minutes, and then all of them.
 * If an alarm goes off in these minutes, all invocations go to the old version again, and CloudFormation rolls the deployment back.
 */
import { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { CfnApplication, CfnDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { ManagedPolicy, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { CfnAlias, type Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { accept } from "./rules.ts";

/**
 * The name of the alias that callers invoke. The alias points to the current version. During a deployment, it points to the old version and
 * to the new version.
 */
const ALIAS = "live";

/** CodeDeploy's predefined configuration: 10 % of the invocations for 5 minutes, then all. */
const STEPS = "CodeDeployDefault.LambdaCanary10Percent5Minutes";

/**
 * Matches the functions that are replaced step by step: those that users need for daily work in the field, and those that turn changes into
 * webhooks and indexes. All other functions are replaced at once, because each function that is replaced step by step needs three
 * additional resources, and a stack has at most 500. Imports, exports and bulk jobs are replaced at once, because users need them rarely.
 * If a change of this pattern adds or removes a function, callers must use a different ARN for the function. API Gateway then has no right
 * to invoke it for some seconds of the deployment.
 */
const gradual =
  /^(?:authorize$|events\/(?:publish|deliver)$|index\/flush$|(?:prospects|notes|appointments)\/(?!(?:bulk|export|import|template)$))/;

/** Returns true if CodeDeploy can replace the function step by step. `file` is the function's file, for example `prospects/list`. */
export const isGradual = (file: string): boolean => gradual.test(file);

/**
 * The construct ids of the alarms that undo a deployment: those on errors of the API and of single functions. Other alarms do not undo it,
 * because CodeDeploy accepts at most ten alarms.
 */
const errorAlarms: ReadonlySet<string> = new Set(["ServerErrors", "Errors", "ItemErrors"]);

/**
 * Creates the function's alias, and returns its ARN. Returns undefined if the function is replaced at once.
 *
 * Each deployment has these aliases, even if it does not need them (with `rollout=at-once` or the preset `small`). Otherwise a change of
 * these settings would change the ARNs that API Gateway invokes. CloudFormation first changes the rights of API Gateway's roles and then
 * the API. Between these two steps, API Gateway would not be allowed to invoke the functions.
 * @param ready the number of environments that Lambda keeps ready (provisioned concurrency). It is set on the alias. Lambda refuses to
 * change it while the alias moves to a new version, so a deployment must not change both (docs/deploy.md).
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

/**
 * Lets CodeDeploy move the aliases step by step, and undo the deployment if an error alarm goes off. Call this function after all functions
 * and alarms of the stack are created, because it finds their constructs in `scope`.
 */
export function moveStepByStep(scope: Construct): void {
  const home = new Construct(scope, "Rollout");
  const created = scope.node.findAll();
  const alarms = created.filter((child) => child instanceof Alarm && errorAlarms.has(child.node.id));
  const application = new CfnApplication(home, "Application", { computePlatform: "Lambda" });
  const role = new Role(home, "Role", {
    assumedBy: new ServicePrincipal("codedeploy.amazonaws.com"),
    managedPolicies: [ManagedPolicy.fromAwsManagedPolicyName("service-role/AWSCodeDeployRoleForLambdaLimited")],
  });
  accept(role, {
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited]":
      "AWS maintains this policy for exactly this purpose. It allows CodeDeploy to move aliases and to read alarms.",
  });
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
    // With this policy, CodeDeploy moves the alias step by step. Otherwise CloudFormation would move it at once.
    alias.cfnOptions.updatePolicy = {
      codeDeployLambdaAliasUpdate: { applicationName: application.ref, deploymentGroupName: group.ref },
    };
  }
}
