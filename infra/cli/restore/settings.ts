/** Gives a restored table the settings that AWS does not restore, except alarms and IAM policies, which the next deployment creates. */
import {
  ContinuousBackupsUnavailableException,
  DescribeContinuousBackupsCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  GetResourcePolicyCommand,
  ListTagsOfResourceCommand,
  PolicyNotFoundException,
  PutResourcePolicyCommand,
  type TableDescription,
  type Tag,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { describeTable } from "../../local/engines/tables.ts";
import { type RestoreContext, untilActive } from "./point-in-time.ts";

interface Tables {
  readonly source: TableDescription;
  readonly target: TableDescription;
}

/** Applies all settings of the source to the restored table, except the stream. `enableStream` enables the stream last. Can be repeated. */
export async function applySettings(context: RestoreContext, tables: Tables): Promise<void> {
  await copyTags(context.client, tables);
  await copyPolicy(context.client, tables);
  await enableRecovery(context, tables);
  await enableTimeToLive(context.client, tables);
  const { TableName } = tables.target;
  if (tables.source.DeletionProtectionEnabled === true && tables.target.DeletionProtectionEnabled !== true) {
    await context.client.send(new UpdateTableCommand({ TableName, DeletionProtectionEnabled: true }));
    await untilActive(context, nameOf(tables.target));
  }
}

/** Enables the stream, returns its ARN. The publisher reads it from its beginning, so rows that must cause no event are written before. */
export async function enableStream(context: RestoreContext, { source, target }: Tables): Promise<string> {
  const { client } = context;
  const name = nameOf(target);
  const current = await describeTable(client, name);
  if (current?.StreamSpecification?.StreamEnabled !== true) {
    const StreamSpecification = { StreamEnabled: true, StreamViewType: source.StreamSpecification?.StreamViewType };
    await client.send(new UpdateTableCommand({ TableName: name, StreamSpecification }));
  }
  const { LatestStreamArn } = await untilActive(context, name);
  if (LatestStreamArn === undefined) throw new Error(`the table ${name} has no stream`);
  return LatestStreamArn;
}

const nameOf = ({ TableName = "" }: TableDescription): string => TableName;

/** Copies the tags, except those whose keys begin with `aws:`. Only AWS may set these. */
async function copyTags(client: DynamoDBClient, { source, target }: Tables): Promise<void> {
  let token: string | undefined;
  do {
    const command = new ListTagsOfResourceCommand({ ResourceArn: source.TableArn, NextToken: token });
    const { Tags = [], NextToken } = await client.send(command);
    const own: Tag[] = Tags.filter(({ Key = "" }) => !Key.startsWith("aws:"));
    if (own.length > 0) await client.send(new TagResourceCommand({ ResourceArn: target.TableArn, Tags: own }));
    token = NextToken;
  } while (token !== undefined);
}

async function copyPolicy(client: DynamoDBClient, { source, target }: Tables): Promise<void> {
  try {
    const { Policy } = await client.send(new GetResourcePolicyCommand({ ResourceArn: source.TableArn }));
    if (Policy === undefined) return;
    const own = Policy.replaceAll(String(source.TableArn), String(target.TableArn));
    await client.send(new PutResourcePolicyCommand({ ResourceArn: target.TableArn, Policy: own }));
  } catch (error) {
    if (!(error instanceof PolicyNotFoundException)) throw error;
  }
}

const RECOVERY_POLL_MS = 5_000;

async function enableRecovery({ client, wait }: RestoreContext, { source, target }: Tables): Promise<void> {
  const described = await client.send(new DescribeContinuousBackupsCommand({ TableName: source.TableName }));
  const { RecoveryPeriodInDays } = described.ContinuousBackupsDescription?.PointInTimeRecoveryDescription ?? {};
  const PointInTimeRecoverySpecification = {
    PointInTimeRecoveryEnabled: true,
    ...(RecoveryPeriodInDays !== undefined && { RecoveryPeriodInDays }),
  };
  const input = { TableName: target.TableName, PointInTimeRecoverySpecification };
  for (;;) {
    try {
      await client.send(new UpdateContinuousBackupsCommand(input));
      return;
    } catch (error) {
      // Try again: DynamoDB refuses to enable point-in-time recovery for some minutes after the creation of a table.
      if (!(error instanceof ContinuousBackupsUnavailableException)) throw error;
      await wait(RECOVERY_POLL_MS);
    }
  }
}

/** Enables time to live as in the source. Does nothing if it is already enabled, because DynamoDB refuses to enable it twice. */
async function enableTimeToLive(client: DynamoDBClient, { source, target }: Tables): Promise<void> {
  const ttlOf = async ({ TableName }: TableDescription) =>
    (await client.send(new DescribeTimeToLiveCommand({ TableName }))).TimeToLiveDescription;
  const [wanted, current] = [await ttlOf(source), await ttlOf(target)];
  const isOn = ({ TimeToLiveStatus = "" } = {}): boolean => ["ENABLED", "ENABLING"].includes(TimeToLiveStatus);
  if (!isOn(wanted) || isOn(current)) return;
  const TimeToLiveSpecification = { Enabled: true, AttributeName: wanted?.AttributeName };
  await client.send(new UpdateTimeToLiveCommand({ TableName: target.TableName, TimeToLiveSpecification }));
}
