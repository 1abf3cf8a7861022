/** Creates the plan by which AWS Backup copies the table every day and every month. */
import {
  BackupPlan,
  BackupPlanRule,
  BackupResource,
  BackupSelection,
  BackupVault,
  CfnBackupVault,
} from "aws-cdk-lib/aws-backup";
import { Schedule } from "aws-cdk-lib/aws-events";
import { ManagedPolicy, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Duration, Fn, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { COLD_AFTER_DAYS, type BackupPlan as Plan } from "../settings/backup-plan.ts";
import type { ServedTable } from "./rights.ts";
import { accept } from "./rules.ts";

/** The hour (UTC) at which AWS Backup starts the copies. Any hour is possible, because a copy uses no capacity of the table. */
const HOUR = "5";
const POLICY = "service-role/AWSBackupServiceRolePolicyForBackup";

/** @param tables the table of the data stack, and the restored table if the service uses one */
export function createBackups(scope: Construct, plan: Plan, tables: readonly ServedTable[]): void {
  const home = new Construct(scope, "Backups");
  const vault = new BackupVault(home, "Vault", { removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE });
  const resource = vault.node.defaultChild;
  if (resource instanceof CfnBackupVault) resource.backupVaultName = vaultName(Stack.of(home));
  const rules = [
    ...(plan.dailyDays > 0
      ? [
          new BackupPlanRule({
            ruleName: "daily",
            scheduleExpression: Schedule.cron({ hour: HOUR, minute: "0" }),
            deleteAfter: Duration.days(plan.dailyDays),
          }),
        ]
      : []),
    ...(plan.monthlyDays > 0
      ? [
          new BackupPlanRule({
            ruleName: "monthly",
            scheduleExpression: Schedule.cron({ day: "1", hour: HOUR, minute: "0" }),
            moveToColdStorageAfter: Duration.days(COLD_AFTER_DAYS),
            deleteAfter: Duration.days(plan.monthlyDays),
          }),
        ]
      : []),
  ];
  const backups = new BackupPlan(home, "Plan", {
    backupPlanName: Stack.of(home).stackName,
    backupVault: vault,
    backupPlanRules: rules,
  });
  const role = new Role(home, "Role", {
    assumedBy: new ServicePrincipal("backup.amazonaws.com"),
    managedPolicies: [ManagedPolicy.fromAwsManagedPolicyName(POLICY)],
  });
  accept(role, {
    [`AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/${POLICY}]`]:
      "AWS maintains this policy for its backup service, and the plan selects only the tables of this service.",
  });
  new BackupSelection(backups, "Table", {
    backupPlan: backups,
    role,
    resources: tables.map((table) => BackupResource.fromArn(table.tableArn)),
    disableDefaultBackupPolicy: true,
  });
}

/**
 * Returns the name of the backup vault. It contains a part of the stack's id, so each new data stack has another vault name. The CDK's
 * generated name would be the same for each new data stack. A new stack could then not be created while the vault of a deleted stack still
 * exists.
 */
const vaultName = (stack: Stack): string =>
  Fn.join("-", [stack.stackName, Fn.select(0, Fn.split("-", Fn.select(2, Fn.split("/", stack.stackId))))]);
