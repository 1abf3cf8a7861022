/** A plan of AWS Backup, which copies the table every day and every month, with a role for restores, a log of its jobs, and alarms. */
import {
  BackupPlan,
  BackupPlanRule,
  BackupResource,
  BackupSelection,
  BackupVault,
  CfnBackupVault,
} from "aws-cdk-lib/aws-backup";
import { ComparisonOperator, Metric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { CfnRule, Schedule } from "aws-cdk-lib/aws-events";
import { PolicyStatement, type Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { FilterPattern, LogGroup, MetricFilter } from "aws-cdk-lib/aws-logs";
import { ArnFormat, CfnOutput, Duration, Fn, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { COLD_AFTER_DAYS, type BackupPlan as Plan } from "../settings/retention.ts";
import { ExplainedAlarm } from "./alarms.ts";
import type { ServedTable } from "./rights.ts";
import { accept, managedRole } from "./rules.ts";
import { shortStackUuid } from "./stack-id.ts";

/** The hour of the copies, in UTC. Any hour is possible, because a copy uses no capacity of the table. */
const HOUR = "5";
const MAINTAINED = "AWS maintains this policy for its backup service, and";

/** Backs up `tables`: the table of the data stack, and the restored table if the service uses one. `logDays` is for the log of jobs. */
export function createBackups(scope: Construct, plan: Plan, tables: readonly ServedTable[], logDays: number): void {
  const home = new Construct(scope, "Backups");
  const vault = new BackupVault(home, "Vault", { removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE });
  const resource = vault.node.defaultChild;
  // The vault of a deleted data stack remains, so the vault of a new data stack needs another name.
  const vaultName = Fn.join("-", [Stack.of(home).stackName, shortStackUuid(home)]);
  if (resource instanceof CfnBackupVault) resource.backupVaultName = vaultName;
  const daily = {
    ruleName: "daily",
    scheduleExpression: Schedule.cron({ hour: HOUR, minute: "0" }),
    deleteAfter: Duration.days(plan.dailyDays),
  };
  const monthly = {
    ruleName: "monthly",
    scheduleExpression: Schedule.cron({ day: "1", hour: HOUR, minute: "0" }),
    moveToColdStorageAfter: Duration.days(COLD_AFTER_DAYS),
    deleteAfter: Duration.days(plan.monthlyDays),
  };
  const backups = new BackupPlan(home, "Plan", {
    backupPlanName: Stack.of(home).stackName,
    backupVault: vault,
    backupPlanRules: [...(plan.dailyDays > 0 ? [daily] : []), ...(plan.monthlyDays > 0 ? [monthly] : [])].map(
      (rule) => new BackupPlanRule(rule),
    ),
  });
  const copies = `${MAINTAINED} the plan selects only the tables of this service.`;
  const role = managedRole(home, "Role", "backup", "AWSBackupServiceRolePolicyForBackup", copies);
  const passed = `${MAINTAINED} only an operator's command passes the role.`;
  const restores = managedRole(home, "RestoreRole", "backup", "AWSBackupServiceRolePolicyForRestores", passed);
  new CfnOutput(Stack.of(home), "RestoreRoleArn", { value: restores.roleArn });
  new BackupSelection(backups, "Table", {
    backupPlan: backups,
    role,
    resources: tables.map((table) => BackupResource.fromArn(table.tableArn)),
    disableDefaultBackupPolicy: true,
  });
  const { logGroup, completed } = logJobs(home, vault, restores, logDays);
  failureAlarm(home, logGroup);
  // An alarm of CloudWatch looks back at most a week, so it cannot watch monthly copies.
  if (plan.dailyDays > 0) absenceAlarm(home, completed);
}

/**
 * Logs the jobs. An alarm counts the failed ones in the log, because AWS Backup's metrics name no reason, and those of restores name no
 * vault.
 */
function logJobs(home: Construct, vault: BackupVault, restores: Role, logDays: number) {
  const logGroup = new LogGroup(home, "Jobs", {
    // EventBridge writes only to log groups whose names begin with `/aws/events/`.
    logGroupName: `/aws/events/${Stack.of(home).stackName}/backups`,
    retention: logDays,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const targets = [{ id: "log", arn: arnOf(logGroup) }];
  const copy = { "detail-type": ["Backup Job State Change"] };
  const backupVaultName = [vault.backupVaultName];
  const jobs = new CfnRule(home, "JobEvents", {
    description: "Logs the jobs of AWS Backup, except completed copies.",
    eventPattern: {
      source: ["aws.backup"],
      $or: [
        { ...copy, detail: { backupVaultName, state: [{ "anything-but": ["COMPLETED"] }] } },
        { "detail-type": ["Copy Job State Change"], detail: { sourceBackupVaultArn: [vault.backupVaultArn] } },
        // Only some events of restores name the vault, but all name the role, which restores only copies of this table.
        {
          "detail-type": ["Restore Job State Change"],
          detail: { resourceType: [{ prefix: "DynamoDB" }], iamRoleArn: [restores.roleArn] },
        },
      ],
    },
    targets,
  });
  const completed = new CfnRule(home, "CopyEvents", {
    description: "Logs the completed copies of AWS Backup.",
    eventPattern: { source: ["aws.backup"], ...copy, detail: { backupVaultName, state: ["COMPLETED"] } },
    targets,
  });
  for (const rule of [jobs, completed]) {
    accept(rule, {
      "Serverless-EventBusDLQ": "EventBridge repeats a failed delivery for a day. Then the next copy reports.",
    });
  }
  allowEvents(logGroup, [jobs, completed]);
  return { logGroup, completed };
}

const FAILURES = ["FAILED", "ABORTED", "EXPIRED"] as const;

function failureAlarm(home: Construct, logGroup: LogGroup): void {
  const filter = new MetricFilter(home, "FailedJobs", {
    logGroup,
    // The events of restores have the field `status`, and those of all other jobs have `state`.
    filterPattern: FilterPattern.any(
      ...["$.detail.state", "$.detail.status"].flatMap((field) =>
        FAILURES.map((state) => FilterPattern.stringValue(field, "=", state)),
      ),
    ),
    metricNamespace: Stack.of(home).stackName,
    metricName: "FailedBackupJobs",
    metricValue: "1",
  });
  new ExplainedAlarm(home, "Failed", {
    metric: filter.metric({ period: Duration.hours(1), statistic: "Sum" }),
    threshold: 0,
    // One failure turns the alarm on for a day, until the next daily copy. An alarm of a single hour would be over before anyone reads it.
    periods: 24,
    badPeriods: 1,
    title: "Copies fail",
    impact: "Users notice nothing, but a copy of the table by AWS Backup is missing, or a restore has failed.",
  });
}

/** Hours without a completed copy after which the alarm goes off. The plan starts a copy every 24 hours. */
const HOURS_WITHOUT_COPY = 48;

/** Creates the alarm on missing copies. If the plan starts no copy, no job fails, and the alarm on failed jobs does not go off. */
function absenceAlarm(home: Construct, completed: CfnRule): void {
  new ExplainedAlarm(home, "Missing", {
    // Each completed copy invokes the rule. If EventBridge loses the value for one copy, the alarm still finds the other copy of the two
    // days.
    metric: new Metric({
      namespace: "AWS/Events",
      metricName: "Invocations",
      dimensionsMap: { RuleName: completed.ref },
      period: Duration.hours(1),
      statistic: "Sum",
    }),
    threshold: 1,
    comparison: ComparisonOperator.LESS_THAN_THRESHOLD,
    periods: HOURS_WITHOUT_COPY,
    missing: TreatMissingData.BREACHING,
    title: "No copy for two days",
    impact: "Users notice nothing, but AWS Backup has completed no copy of the table for two days.",
  });
}

/** Returns the ARN of a log group without `:*` at the end, as EventBridge requires. */
const arnOf = (logGroup: LogGroup): string =>
  Stack.of(logGroup).formatArn({
    service: "logs",
    resource: "log-group",
    resourceName: logGroup.logGroupName,
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });

/** Adds the two statements that AWS documents for rules that write to a log group. */
function allowEvents(logGroup: LogGroup, rules: readonly CfnRule[]): void {
  const principals = [
    new ServicePrincipal("events.amazonaws.com"),
    new ServicePrincipal("delivery.logs.amazonaws.com"),
  ];
  const resources = [logGroup.logGroupArn];
  logGroup.addToResourcePolicy(new PolicyStatement({ principals, actions: ["logs:CreateLogStream"], resources }));
  logGroup.addToResourcePolicy(
    new PolicyStatement({
      principals,
      actions: ["logs:PutLogEvents"],
      resources,
      conditions: { ArnEquals: { "aws:SourceArn": rules.map(({ attrArn }) => attrArn) } },
    }),
  );
}
