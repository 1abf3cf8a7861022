/** Creates the template's tables, or checks that those of an earlier start still have its schema. */
import * as z from "zod/mini";
import { type AwsCall, AwsError } from "./aws-json.ts";
import { LocalError } from "./error.ts";
import type { Stack } from "./stack.ts";

type Table = Stack["tables"][number];

const KeySchema = z.array(z.object({ AttributeName: z.string(), KeyType: z.string() }));
const Schema = z.object({
  KeySchema,
  AttributeDefinitions: z.array(z.object({ AttributeName: z.string(), AttributeType: z.string() })),
  GlobalSecondaryIndexes: z._default(
    z.array(z.object({ IndexName: z.string(), KeySchema, Projection: z.object({ ProjectionType: z.string() }) })),
    [],
  ),
  LatestStreamArn: z.optional(z.string()),
});
const Described = z.object({ Table: Schema });

/** Whether the table is new. Throws a LocalError when an existing one has another schema. */
export async function ensureTable(dynamoDb: AwsCall, table: Table): Promise<boolean> {
  const existing = await describe(dynamoDb, table.name);
  if (existing !== undefined) {
    if (shape(existing.Table) === shape(table)) return false;
    throw new LocalError(`the data directory holds ${table.name} with another schema; begin anew with --fresh`);
  }
  await dynamoDb("CreateTable", {
    TableName: table.name,
    KeySchema: table.KeySchema,
    AttributeDefinitions: table.AttributeDefinitions,
    BillingMode: table.BillingMode,
    ...(table.GlobalSecondaryIndexes !== undefined && {
      GlobalSecondaryIndexes: table.GlobalSecondaryIndexes.map(index),
    }),
  });
  const { TimeToLiveSpecification } = table;
  if (TimeToLiveSpecification !== undefined) {
    await dynamoDb("UpdateTimeToLive", { TableName: table.name, TimeToLiveSpecification });
  }
  return true;
}

/**
 * A new table gets its stream once it holds what it begins with: loading makes no events, and the bundled server writes
 * ten times faster without a stream.
 */
export async function ensureStream(dynamoDb: AwsCall, { name, StreamSpecification }: Table): Promise<void> {
  if (StreamSpecification === undefined) return;
  if ((await describe(dynamoDb, name))?.Table.LatestStreamArn !== undefined) return;
  await dynamoDb("UpdateTable", {
    TableName: name,
    StreamSpecification: { StreamEnabled: true, ...StreamSpecification },
  });
}

export async function dropTable(dynamoDb: AwsCall, tableName: string): Promise<void> {
  if ((await describe(dynamoDb, tableName)) !== undefined) await dynamoDb("DeleteTable", { TableName: tableName });
}

/** The server's own ARN of the table's stream. */
export async function streamOf(dynamoDb: AwsCall, tableName: string): Promise<string> {
  const arn = (await describe(dynamoDb, tableName))?.Table.LatestStreamArn;
  if (arn === undefined) throw new LocalError(`${tableName}: the table has no stream`);
  return arn;
}

async function describe(dynamoDb: AwsCall, tableName: string): Promise<z.infer<typeof Described> | undefined> {
  try {
    return z.parse(Described, await dynamoDb("DescribeTable", { TableName: tableName }));
  } catch (error) {
    if (error instanceof AwsError && error.code === "ResourceNotFoundException") return undefined;
    throw error;
  }
}

const index = ({ IndexName, KeySchema, Projection }: NonNullable<Table["GlobalSecondaryIndexes"]>[number]) => ({
  IndexName,
  KeySchema,
  Projection,
});

/** What cannot be changed without writing the table anew: keys, their types, and the indexes. */
function shape(source: object): string {
  const table = z.parse(Schema, source);
  const keySchema = (keys: z.infer<typeof KeySchema>): string[] =>
    keys.map((key) => `${key.KeyType} ${key.AttributeName}`).sort();
  return JSON.stringify({
    keys: keySchema(table.KeySchema),
    attributes: table.AttributeDefinitions.map((one) => `${one.AttributeName} ${one.AttributeType}`).sort(),
    indexes: table.GlobalSecondaryIndexes.map(
      (one) => `${one.IndexName} ${keySchema(one.KeySchema)} ${one.Projection.ProjectionType}`,
    ).sort(),
  });
}
