/** The role with which API Gateway writes logs. It outlives the data stack, because all APIs of the account and region share it. */
import { CfnAccount } from "aws-cdk-lib/aws-apigateway";
import { RemovalPolicy } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { managedRole } from "./rules.ts";

export function createLogRole(scope: Construct): void {
  const home = new Construct(scope, "ApiLogs");
  const reason = "The role belongs to the account and serves all its APIs, and API Gateway requires this policy.";
  const role = managedRole(home, "Role", "apigateway", "AmazonAPIGatewayPushToCloudWatchLogs", reason);
  role.applyRemovalPolicy(RemovalPolicy.RETAIN);
  new CfnAccount(home, "Account", { cloudWatchRoleArn: role.roleArn }).applyRemovalPolicy(RemovalPolicy.RETAIN);
}
