/**
 * Events of AWS Backup for the tests of EventBridge rules and alarms, with the fields that rules may match. The fields are those of AWS's
 * examples: https://docs.aws.amazon.com/aws-backup/latest/devguide/eventbridge.html
 */
import type { LogLine } from "../../../infra/local/options.ts";
import { createFilter } from "../../../infra/local/sources/event-filter.ts";
import { at, isFields, listed, type Template, target } from "../template.ts";

const VAULT = "Canvassing-Data-9ab3e749";
const vaultArn = (name: string): string => `arn:aws:backup:eu-west-1:123456789012:backup-vault:${name}`;

interface BackupEvent {
  readonly "detail-type": string;
  readonly detail: object;
}

const copyOf = (state: string, vault = VAULT): BackupEvent => ({
  "detail-type": "Backup Job State Change",
  detail: { backupVaultArn: vaultArn(vault), backupVaultName: vault, resourceType: "DynamoDB", state },
});

const transfer = (state: string, vault = VAULT): BackupEvent => ({
  "detail-type": "Copy Job State Change",
  detail: {
    sourceBackupVaultArn: vaultArn(vault),
    destinationBackupVaultArn: vaultArn("elsewhere"),
    resourceType: "DynamoDB",
    state,
  },
});

const roleArn = (name: string): string => `arn:aws:iam::123456789012:role/${name}`;
const ROLE = "Canvassing-Data-RestoreRole";

const restore = (status: string, resourceType = "DynamoDB", role = ROLE): BackupEvent => ({
  "detail-type": "Restore Job State Change",
  detail: { iamRoleArn: roleArn(role), resourceType, status },
});

export const successes: readonly BackupEvent[] = [
  copyOf("RUNNING"),
  copyOf("COMPLETED"),
  transfer("COMPLETED"),
  restore("COMPLETED"),
];
export const failures: readonly BackupEvent[] = [
  ...["FAILED", "ABORTED", "EXPIRED"].map((state) => copyOf(state)),
  transfer("FAILED"),
  ...["FAILED", "ABORTED"].map((status) => restore(status)),
  restore("FAILED", "DynamoDB.FullyManaged"),
];
/** Events that no rule logs: of other vaults, resource types and roles, and the deletion of the vault. */
export const foreign: readonly BackupEvent[] = [
  copyOf("FAILED", "another"),
  transfer("FAILED", "another"),
  restore("FAILED", "EC2"),
  restore("FAILED", "DynamoDB", "AWSBackupDefaultServiceRole"),
  { "detail-type": "Backup Vault State Change", detail: { backupVaultName: VAULT, state: "DELETED" } },
];

/** Returns the log lines that the template's EventBridge rules write for these events. The `file` of a line is the id of its rule. */
export function loggedBackupEvents(template: Template, events: readonly BackupEvent[]): LogLine[] {
  return template.all("AWS::Events::Rule").flatMap(({ id, properties }) => {
    if (properties.EventPattern === undefined) return [];
    const matches = createFilter(id, { Filters: alternatives(template, properties.EventPattern) });
    const group = groupOf(template, at(properties, "Targets", 0, "Arn"));
    return events
      .map((event) => ({ version: "0", source: "aws.backup", account: "123456789012", region: "eu-west-1", ...event }))
      .filter(matches)
      .map((event) => ({ file: id, group, text: JSON.stringify(event) }));
  });
}

/** Returns one filter for each alternative below `$or`, with names and ARNs in place of references to the vault and the role. */
function alternatives(template: Template, pattern: unknown): { Pattern: string }[] {
  const [vault] = template.all("AWS::Backup::BackupVault");
  const role = target(template.stacks.data.Outputs?.RestoreRoleArn?.Value);
  const text = JSON.stringify(pattern, (_, value: unknown) => {
    if (role !== undefined && target(value) === role) return roleArn(ROLE);
    if (target(value) !== vault?.id) return value;
    return at(value, "Ref") !== undefined || at(value, "Fn::GetAtt", 1) === "BackupVaultName" ? VAULT : vaultArn(VAULT);
  });
  const { $or, ...common }: Record<string, unknown> = JSON.parse(text);
  if ($or === undefined) return [{ Pattern: JSON.stringify(common) }];
  return listed($or).map((one) => ({ Pattern: JSON.stringify({ ...common, ...(isFields(one) ? one : {}) }) }));
}

/** Returns the logical id of the log group that the ARN of a rule's target contains. */
function groupOf(template: Template, arn: unknown): string {
  const parts = listed(at(arn, "Fn::Join", 1)).map(target);
  return parts.find((id) => id !== undefined && template.resources[id]?.Type === "AWS::Logs::LogGroup") ?? "";
}
