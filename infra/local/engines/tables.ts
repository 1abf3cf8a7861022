/** Creates the tables of the CloudFormation templates and their streams. */
import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  type GlobalSecondaryIndexDescription,
  type KeySchemaElement,
  ResourceNotFoundException,
  type TableDescription,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { LocalError } from "../servers/error.ts";
import type { Stack } from "../template/stack.ts";

type Table = Stack["tables"][number];

/** Returns true if the table was created. Throws a LocalError if the table exists with another schema. */
export async function ensureTable(dynamoDb: DynamoDBClient, table: Table): Promise<boolean> {
  const existing = await describeTable(dynamoDb, table.name);
  if (existing !== undefined) {
    if (schemaOf(existing) === schemaOf(table)) return false;
    throw new LocalError(`the data directory holds ${table.name} with another schema; begin anew with --fresh`);
  }
  const { name: TableName, KeySchema, AttributeDefinitions, BillingMode, TimeToLiveSpecification } = table;
  const { GlobalSecondaryIndexes } = table;
  await dynamoDb.send(
    new CreateTableCommand({ TableName, KeySchema, AttributeDefinitions, BillingMode, GlobalSecondaryIndexes }),
  );
  if (TimeToLiveSpecification !== undefined) {
    await dynamoDb.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
  }
  return true;
}

/**
 * Enables the stream of a table. Call this function after the demo data is loaded, for two reasons: the functions that read the stream must
 * not process the demo data, and the server writes ten times as fast while the table has no stream.
 */
export async function ensureStream(dynamoDb: DynamoDBClient, { name, StreamSpecification }: Table): Promise<void> {
  if (StreamSpecification === undefined) return;
  if ((await describeTable(dynamoDb, name))?.LatestStreamArn !== undefined) return;
  const specification = { StreamEnabled: true, ...StreamSpecification };
  await dynamoDb.send(new UpdateTableCommand({ TableName: name, StreamSpecification: specification }));
}

export async function dropTable(dynamoDb: DynamoDBClient, TableName: string): Promise<void> {
  if ((await describeTable(dynamoDb, TableName)) !== undefined) {
    await dynamoDb.send(new DeleteTableCommand({ TableName }));
  }
}

export async function streamOf(dynamoDb: DynamoDBClient, tableName: string): Promise<string> {
  const arn = (await describeTable(dynamoDb, tableName))?.LatestStreamArn;
  if (arn === undefined) throw new LocalError(`${tableName}: the table has no stream`);
  return arn;
}

export async function describeTable(
  dynamoDb: DynamoDBClient,
  TableName: string,
): Promise<TableDescription | undefined> {
  try {
    return (await dynamoDb.send(new DescribeTableCommand({ TableName }))).Table;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

type Index = Pick<GlobalSecondaryIndexDescription, "IndexName" | "KeySchema" | "Projection">;
type Schema = Pick<TableDescription, "KeySchema" | "AttributeDefinitions"> & {
  readonly GlobalSecondaryIndexes?: readonly Index[] | undefined;
};

/** Returns the properties of a table that a later start cannot change: keys, key types and indexes. */
function schemaOf({ KeySchema, AttributeDefinitions = [], GlobalSecondaryIndexes = [] }: Schema): string {
  const keysOf = (keys: readonly KeySchemaElement[] = []): string[] =>
    keys.map((key) => `${key.KeyType} ${key.AttributeName}`).sort();
  return JSON.stringify({
    keys: keysOf(KeySchema),
    attributes: AttributeDefinitions.map((one) => `${one.AttributeName} ${one.AttributeType}`).sort(),
    indexes: GlobalSecondaryIndexes.map(
      (index) => `${index.IndexName} ${keysOf(index.KeySchema)} ${index.Projection?.ProjectionType}`,
    ).sort(),
  });
}
