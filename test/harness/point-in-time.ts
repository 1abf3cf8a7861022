/**
 * A DynamoDB endpoint with point-in-time recovery. As in AWS, a restored table has the rows and indexes of its source, and no other
 * settings (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_RestoreTableToPointInTime.html).
 */
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import * as dynamodb from "@aws-sdk/client-dynamodb";
import * as dynamodbStreams from "@aws-sdk/client-dynamodb-streams";
import * as z from "zod/mini";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { LOCAL } from "./faulty-dynamodb.ts";
import { forwarded } from "./forwarded.ts";

type Json = Record<string, unknown>;
type Row = Record<string, dynamodb.AttributeValue>;

const JsonBody = z.record(z.string(), z.unknown());
const Named = z.looseObject({ TableName: z.string() });
const Resource = z.looseObject({ ResourceArn: z.string() });
const Restore = z.strictObject({
  SourceTableName: z.string(),
  TargetTableName: z.string(),
  RestoreDateTime: z.number(),
});
const Backups = z.strictObject({
  TableName: z.string(),
  PointInTimeRecoverySpecification: z.strictObject({
    PointInTimeRecoveryEnabled: z.boolean(),
    RecoveryPeriodInDays: z.optional(z.int()),
  }),
});

class AwsError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

interface TableState {
  /** The time at which point-in-time recovery was enabled. Undefined if it is disabled. */
  recoverySince?: number;
  policy?: string;
  summary?: { readonly SourceTableArn: string; readonly RestoreDateTime: number; RestoreInProgress: boolean };
  status: "ACTIVE" | "CREATING" | "UPDATING";
}

export async function startPointInTime(engine: string) {
  const settings = { endpoint: engine, ...LOCAL };
  const client = new dynamodb.DynamoDBClient(settings);
  const streams = new dynamodbStreams.DynamoDBStreamsClient(settings);
  const states = new Map<string, TableState>();
  const restores = new Set<Promise<void>>();
  /** The operation of each request so far, with its table or resource. */
  const calls: string[] = [];

  const stateOf = (name: string): TableState => {
    const state = states.get(name) ?? { status: "ACTIVE" };
    states.set(name, state);
    return state;
  };

  async function tableOf(name: string): Promise<dynamodb.TableDescription> {
    const description = client.send(new dynamodb.DescribeTableCommand({ TableName: name }));
    const table = (await description.catch(() => undefined))?.Table;
    if (table === undefined) throw new AwsError("TableNotFoundException", `Table not found: ${name}`);
    return table;
  }

  const nameOf = (arn: string): string => /:table\/([^/]+)/.exec(arn)?.[1] ?? "";

  function recoveryOf(name: string): Json {
    const { recoverySince } = stateOf(name);
    if (recoverySince === undefined) return { PointInTimeRecoveryStatus: "DISABLED" };
    return {
      PointInTimeRecoveryStatus: "ENABLED",
      RecoveryPeriodInDays: 35,
      EarliestRestorableDateTime: Math.ceil(recoverySince / 1_000),
      // On AWS, a table can usually be restored to at most five minutes ago. Here it can be restored to now, so that tests need not wait.
      LatestRestorableDateTime: Math.floor(Date.now() / 1_000),
    };
  }

  const described = (name: string): Json => ({
    ContinuousBackupsDescription: {
      ContinuousBackupsStatus: "ENABLED",
      PointInTimeRecoveryDescription: recoveryOf(name),
    },
  });

  async function startRestore(body: Json): Promise<Json> {
    const parsed = z.safeParse(Restore, body);
    if (!parsed.success) throw new AwsError("ValidationException", "the emulator knows no overrides");
    const { SourceTableName, TargetTableName, RestoreDateTime: at } = parsed.data;
    const source = await tableOf(SourceTableName);
    const recovery = recoveryOf(SourceTableName);
    if (recovery.PointInTimeRecoveryStatus !== "ENABLED") {
      throw new AwsError("PointInTimeRecoveryUnavailableException", "Point in time recovery is not enabled");
    }
    if (at < Number(recovery.EarliestRestorableDateTime) || at > Number(recovery.LatestRestorableDateTime)) {
      throw new AwsError("InvalidRestoreTimeException", "the time is outside of the restorable range");
    }
    if (states.has(TargetTableName) || (await tableOf(TargetTableName).then(Boolean, () => false))) {
      throw new AwsError("TableAlreadyExistsException", `Table already exists: ${TargetTableName}`);
    }
    const summary = { SourceTableArn: source.TableArn ?? "", RestoreDateTime: at, RestoreInProgress: true };
    states.set(TargetTableName, { status: "CREATING", summary });
    await createLike(source, TargetTableName);
    const fill = async (): Promise<void> => {
      await fillTable(source, TargetTableName, at);
      Object.assign(stateOf(TargetTableName), { status: "ACTIVE" });
      summary.RestoreInProgress = false;
    };
    const filling: Promise<void> = fill().finally(() => restores.delete(filling));
    restores.add(filling);
    return { TableDescription: { TableName: TargetTableName, TableStatus: "CREATING", RestoreSummary: summary } };
  }

  async function createLike(source: dynamodb.TableDescription, TableName: string): Promise<void> {
    const { KeySchema, AttributeDefinitions } = source;
    const GlobalSecondaryIndexes = source.GlobalSecondaryIndexes?.map(({ IndexName, KeySchema, Projection }) => ({
      IndexName,
      KeySchema,
      Projection,
    }));
    const like = { KeySchema, AttributeDefinitions, GlobalSecondaryIndexes, BillingMode: "PAY_PER_REQUEST" as const };
    await client.send(new dynamodb.CreateTableCommand({ TableName, ...like }));
  }

  /** Fills `target` with the rows that the source had at `at` (in seconds). The first stream record of a later change has the old row. */
  async function fillTable(source: dynamodb.TableDescription, target: string, at: number): Promise<void> {
    const keys = (source.KeySchema ?? []).map(({ AttributeName = "" }) => AttributeName);
    const textOf = (row: Row): string => JSON.stringify(keys.map((key) => row[key]));
    const rows = new Map<string, Row>();
    for await (const { Items = [] } of dynamodb.paginateScan(
      { client },
      { TableName: source.TableName, ConsistentRead: true },
    )) {
      for (const row of Items) rows.set(textOf(row), row);
    }
    const seen = new Set<string>();
    for await (const { record } of recordsOf(streams, source.LatestStreamArn)) {
      const { Keys = {}, OldImage, ApproximateCreationDateTime } = record.dynamodb ?? {};
      const key = textOf(Keys);
      if ((ApproximateCreationDateTime?.getTime() ?? 0) / 1_000 < at || seen.has(key)) continue;
      seen.add(key);
      if (OldImage === undefined) rows.delete(key);
      else rows.set(key, OldImage);
    }
    const all = [...rows.values()];
    for (let first = 0; first < all.length; first += 25) {
      const puts = all.slice(first, first + 25).map((Item) => ({ PutRequest: { Item } }));
      await client.send(new dynamodb.BatchWriteItemCommand({ RequestItems: { [target]: puts } }));
    }
  }

  /** Returns the answer of an operation that the local server does not have. Returns undefined for all other operations. */
  async function own(operation: string, body: Json): Promise<Json | undefined> {
    switch (operation) {
      case "RestoreTableToPointInTime":
        return startRestore(body);
      case "DescribeContinuousBackups": {
        const { TableName } = Named.parse(body);
        await tableOf(TableName);
        return described(TableName);
      }
      case "UpdateContinuousBackups": {
        const { TableName, PointInTimeRecoverySpecification } = z.parse(Backups, body);
        await tableOf(TableName);
        const state = stateOf(TableName);
        if (state.status === "CREATING") throw new AwsError("ContinuousBackupsUnavailableException", "not yet");
        if (PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled) state.recoverySince ??= Date.now();
        else delete state.recoverySince;
        return described(TableName);
      }
      case "GetResourcePolicy": {
        const { policy } = stateOf(nameOf(Resource.parse(body).ResourceArn));
        if (policy === undefined) throw new AwsError("PolicyNotFoundException", "no policy is attached");
        return { Policy: policy, RevisionId: "1" };
      }
      case "PutResourcePolicy": {
        const { ResourceArn, Policy } = z.parse(z.object({ ResourceArn: z.string(), Policy: z.string() }), body);
        if (!Policy.includes(ResourceArn)) throw new AwsError("ValidationException", "the policy names another table");
        stateOf(nameOf(ResourceArn)).policy = Policy;
        return { RevisionId: "1" };
      }
      default:
        return undefined;
    }
  }

  /** Throws for what AWS refuses: changes of a table that is being created or updated, and an UpdateTable with several changes. */
  function check(operation: string, body: Json): void {
    const name = z.safeParse(Named, body).data?.TableName ?? nameOf(String(body.ResourceArn ?? ""));
    const state = states.get(name);
    if (operation === "UpdateTable") {
      const { TableName: _, ...changes } = body;
      if (Object.keys(changes).length !== 1) {
        throw new AwsError("ValidationException", "UpdateTable makes one change at a time");
      }
      if (state?.status === "UPDATING") throw new AwsError("ResourceInUseException", `${name} is being updated`);
    }
    if (operation === "TagResource" && JSON.stringify(body.Tags).includes('"Key":"aws:')) {
      throw new AwsError("ValidationException", "keys that begin with aws: are reserved");
    }
    if (state?.status !== "CREATING" || operation === "DescribeTable") return;
    const isControl = /^(?:Update|Delete|Describe|Tag|Put(?!Item)|List)/.test(operation);
    throw new AwsError(isControl ? "ResourceInUseException" : "ResourceNotFoundException", `${name} is being created`);
  }

  /** Adds the simulated status of a restored or updated table to the local server's description of it. */
  function withState(operation: string, body: Json, answer: string): string {
    if (operation !== "DescribeTable" && operation !== "UpdateTable") return answer;
    const state = states.get(Named.parse(body).TableName);
    if (state === undefined) return answer;
    const field = operation === "DescribeTable" ? "Table" : "dynamodb.TableDescription";
    const parsed = z.parse(JsonBody, JSON.parse(answer));
    if (parsed[field] === undefined) return answer;
    if (operation === "UpdateTable") state.status = "UPDATING";
    const { status: TableStatus, summary } = state;
    // This answer still says UPDATING. The next answer of DescribeTable says ACTIVE, so an update ends after one DescribeTable.
    if (operation === "DescribeTable" && state.status === "UPDATING") state.status = "ACTIVE";
    const table = { ...z.parse(JsonBody, parsed[field]), TableStatus, ...(summary && { RestoreSummary: summary }) };
    return JSON.stringify({ ...parsed, [field]: table });
  }

  async function handle(request: IncomingMessage): Promise<{ status: number; body: string }> {
    const target = String(request.headers["x-amz-target"]);
    const operation = target.split(".")[1] ?? "";
    const raw = await text(request);
    const body = z.parse(JsonBody, JSON.parse(raw));
    calls.push(`${operation} ${String(body.TableName ?? body.TargetTableName ?? body.ResourceArn ?? "")}`);
    try {
      if (!target.startsWith("DynamoDBStreams")) check(operation, body);
      const answer = await own(operation, body);
      if (answer !== undefined) return { status: 200, body: JSON.stringify(answer) };
      const passed = await forwarded(engine, request, raw);
      const [status, content] = [passed.statusCode ?? 0, await text(passed)];
      if (operation === "DeleteTable" && status === 200) states.delete(Named.parse(body).TableName);
      return { status, body: status === 200 ? withState(operation, body, content) : content };
    } catch (error) {
      if (!(error instanceof AwsError)) throw error;
      const __type = `com.amazonaws.dynamodb.v20120810#${error.code}`;
      return { status: 400, body: JSON.stringify({ __type, message: error.message }) };
    }
  }

  const { endpoint, stop } = await serveOnLoopback(async (request, response) => {
    const { status, body } = await handle(request);
    response.writeHead(status, { "Content-Type": "application/x-amz-json-1.0" }).end(body);
  });
  return {
    endpoint,
    calls,
    stop: async () => {
      await Promise.allSettled(restores);
      stop();
    },
  };
}

/** Yields all records that the stream has at the moment, each with the id of its shard. */
export async function* recordsOf(streams: dynamodbStreams.DynamoDBStreamsClient, StreamArn: string | undefined) {
  const { StreamDescription } = await streams.send(new dynamodbStreams.DescribeStreamCommand({ StreamArn }));
  for (const { ShardId = "" } of StreamDescription?.Shards ?? []) {
    const start = { StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" } as const;
    let { ShardIterator } = await streams.send(new dynamodbStreams.GetShardIteratorCommand(start));
    while (ShardIterator !== undefined) {
      const { Records = [], NextShardIterator } = await streams.send(
        new dynamodbStreams.GetRecordsCommand({ ShardIterator }),
      );
      for (const record of Records) yield { record, shardId: ShardId };
      // An open shard always has a next iterator, so the loop ends at the first answer without records.
      ShardIterator = Records.length === 0 ? undefined : NextShardIterator;
    }
  }
}
