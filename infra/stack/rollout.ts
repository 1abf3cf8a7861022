/**
 * Lets CodeDeploy replace functions step by step. The new version gets a tenth of the invocations for five minutes, and then all of them.
 * If an alarm goes off in these minutes, all invocations go to the old version again, and CloudFormation rolls the deployment back.
 */
import { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { CfnApplication, CfnDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { ManagedPolicy, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { CfnAlias, type CfnAliasProps, type Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
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
 * The functions that are replaced step by step: those that users need for daily work in the field, and those that turn changes into
 * webhooks and indexes. All other functions are replaced at once, because each step-by-step function takes three more of the 500 resources
 * of a stack. Imports, exports and bulk jobs are replaced at once, too, because they are used rarely.
 */
const gradual =
  /^(?:authorize$|events\/(?:publish|deliver)$|index\/flush$|(?:prospects|notes|appointments)\/(?!(?:bulk|export|import|template)$))/;

/**
 * The construct ids of the alarms on errors of the API and of single functions. Other alarms do not undo a deployment, because CodeDeploy
 * accepts at most ten alarms.
 */
const errorAlarms: ReadonlySet<string> = new Set(["ServerErrors", "Errors", "ItemErrors"]);

/** The provisioned concurrency of an alias: environments that Lambda keeps ready. */
export type ReadyEnvironments = Pick<CfnAliasProps, "provisionedConcurrencyConfig">;

export class Rollout {
  readonly #home: Construct;
  readonly #aliases: CfnAlias[] = [];

  constructor(scope: Construct) {
    this.#home = new Construct(scope, "Rollout");
  }

  /** Returns the ARN of the function's alias, or undefined if the function is replaced at once. */
  aliasOf(deployed: LambdaFunction, file: string, ready: ReadyEnvironments = {}): string | undefined {
    if (!gradual.test(file)) return undefined;
    const alias = new CfnAlias(deployed, "Live", {
      functionName: deployed.functionName,
      functionVersion: deployed.currentVersion.version,
      name: ALIAS,
      ...ready,
    });
    this.#aliases.push(alias);
    return alias.ref;
  }

  /** Lets CodeDeploy undo the deployment if an error alarm goes off. Call this method after all functions and alarms are created. */
  watchErrors(scope: Construct): void {
    const alarms = scope.node.findAll().filter((child) => child instanceof Alarm && errorAlarms.has(child.node.id));
    const application = new CfnApplication(this.#home, "Application", { computePlatform: "Lambda" });
    const role = new Role(this.#home, "Role", {
      assumedBy: new ServicePrincipal("codedeploy.amazonaws.com"),
      managedPolicies: [ManagedPolicy.fromAwsManagedPolicyName("service-role/AWSCodeDeployRoleForLambdaLimited")],
    });
    accept(role, {
      "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited]":
        "AWS maintains this policy for exactly this purpose. It allows CodeDeploy to move aliases and to read alarms.",
    });
    for (const alias of this.#aliases) {
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
}
