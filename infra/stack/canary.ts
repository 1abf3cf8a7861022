/** The scheduled smoke test, with its rights and alarm. */
import { TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { CfnRule } from "aws-cdk-lib/aws-events";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { CfnEventInvokeConfig, CfnPermission } from "aws-cdk-lib/aws-lambda";
import { Duration, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { canary } from "../routes/routes.ts";
import { canaryParameter } from "../settings/names.ts";
import { ExplainedAlarm } from "./alarms.ts";
import { createFunction, type Platform } from "./function.ts";
import { allow } from "./rights.ts";
import { accept } from "./rules.ts";

const EVERY_MINUTES = 5;

export function createCanary(scope: Stack, platform: Platform, apiUrl: string): void {
  const { stackName } = Stack.of(scope);
  const parameter = canaryParameter(stackName);
  const run = createFunction(new Construct(scope, "Watch"), platform, {
    ...canary,
    environment: {
      API_URL: apiUrl,
      CANARY_PARAMETER: parameter,
      METRICS_NAMESPACE: stackName,
      ...(platform.userPool !== undefined && {
        USER_POOL_ID: platform.userPool.id,
        USER_POOL_CLIENT_ID: platform.userPool.clientId,
      }),
    },
    statements: signIn(scope, platform, parameter),
  });
  const rule = new CfnRule(run, "Schedule", {
    scheduleExpression: `rate(${EVERY_MINUTES} minutes)`,
    description: "Runs the smoke test.",
    targets: [{ id: "canary", arn: run.functionArn }],
  });
  accept(rule, { "Serverless-EventBusDLQ": "If a run is lost, the next run does the same." });
  new CfnPermission(run, "ByRule", {
    action: "lambda:InvokeFunction",
    functionName: run.functionName,
    principal: "events.amazonaws.com",
    sourceArn: rule.attrArn,
  });
  // Do not repeat a failed run, because the next run follows within five minutes.
  const once = new CfnEventInvokeConfig(run, "Once", {
    functionName: run.functionName,
    qualifier: "$LATEST",
    maximumRetryAttempts: 0,
  });
  accept(once, {
    "Serverless-LambdaAsyncFailureDestination": "The alarm counts failed runs, and their event has no content.",
  });
  new ExplainedAlarm(run, "Failed", {
    metric: run.metricErrors({ period: Duration.minutes(EVERY_MINUTES), statistic: "Sum" }),
    threshold: 0,
    periods: 2,
    // A period without an invocation counts as bad, because nothing then shows whether the service works.
    missing: TreatMissingData.BREACHING,
    title: "Smoke test fails",
    impact: "Users probably cannot work, because the scheduled smoke test fails or does not run.",
  });
}

function signIn({ partition, region, account }: Stack, { userPool }: Platform, parameter: string): PolicyStatement[] {
  return [
    allow(["ssm:GetParameter"], [`arn:${partition}:ssm:${region}:${account}:parameter${parameter}`]),
    ...(userPool === undefined ? [] : [allow(["cognito-idp:AdminInitiateAuth"], [userPool.arn])]),
  ];
}
