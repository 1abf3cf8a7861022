/**
 * Lets CodeDeploy replace functions step by step. The new version gets a tenth of the calls for five minutes, and then all calls. If an
 * alarm goes off in this time, all calls go to the old version again, and CloudFormation undoes the deployment.
 */
import { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { CfnApplication, CfnDeploymentGroup } from "aws-cdk-lib/aws-codedeploy";
import { ManagedPolicy, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { CfnAlias, type CfnAliasProps, type Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { accept } from "./rules.ts";

/** The alias that callers invoke. It points to the current version. During a deployment, it points to the old and the new version. */
export const ALIAS = "live";

/** CodeDeploy's predefined configuration. */
const STEPS = "CodeDeployDefault.LambdaCanary10Percent5Minutes";

/**
 * The functions of daily work in the field, and those that turn changes into webhooks and indexes. The others are replaced at once, because
 * each function takes three more of the 500 resources of a stack. Admins rarely use files and bulk jobs.
 */
const gradual =
  /^(?:authorize$|events\/(?:publish|deliver)$|index\/flush$|(?:prospects|notes|appointments)\/(?!(?:bulk|export|import|template)$))/;

/** The construct ids of the alarms on errors of the API and of single functions. CodeDeploy accepts at most ten alarms. */
const errorAlarms: ReadonlySet<string> = new Set(["ServerErrors", "Errors"]);

/** The environments of an alias that Lambda keeps ready. */
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

  /** Makes each alarm on errors undo the deployment. Call it after all functions and alarms are made. */
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
      // CloudFormation then lets CodeDeploy move the alias, instead of moving it at once.
      alias.cfnOptions.updatePolicy = {
        codeDeployLambdaAliasUpdate: { applicationName: application.ref, deploymentGroupName: group.ref },
      };
    }
  }
}
