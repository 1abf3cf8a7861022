/**
 * A local DynamoDB server whose requests fail as planned. The SDK's client calls it through a proxy, that of plain-dynamodb.ts directly.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { text } from "node:stream/consumers";
import { CreateTableCommand, DeleteTableCommand, DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import type { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { DUE_INDEX, type Key } from "#shared/db/keys.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { type Json, plainClient, type Reply, type Send, SIGNATURE, sendTo } from "./plain-dynamodb.ts";
import { type ServerWithFile, startServerWithFile, storedRows } from "./stored-rows.ts";

export type Fault =
  | { readonly kind: "pass" }
  | { readonly kind: "error"; readonly code: string; readonly status: number }
  /** DynamoDB executes the request, but the connection breaks before the reply. */
  | { readonly kind: "lose reply" }
  | { readonly kind: "hang" }
  /** DynamoDB executes the request, changed by `change`, at once. The client gets the reply after `meanwhile` has ended. */
  | { readonly kind: "late"; readonly meanwhile: () => Promise<unknown>; readonly change?: (body: Json) => Json }
  /** DynamoDB executes the request only after `meanwhile` has ended. */
  | { readonly kind: "early"; readonly meanwhile: () => Promise<unknown> }
  /** The proxy changes the request before DynamoDB gets it. */
  | { readonly kind: "ask"; readonly change: (body: Json) => Json }
  /** DynamoDB gets this share of a batch's statements, at least one unless the share is 0. The reply reports the rest as throttled. */
  | { readonly kind: "part"; readonly share: number };

export type FaultPlan = (operation: string, number: number, body: Json) => Fault;

export const pass: Fault = { kind: "pass" };
export const throttle: Fault = { kind: "error", code: "ProvisionedThroughputExceededException", status: 400 };
export const serverError: Fault = { kind: "error", code: "InternalServerError", status: 500 };
export const conflict: Fault = { kind: "error", code: "TransactionConflictException", status: 400 };

/** The plan in which eventually consistent reads find no prospect, as if they read an outdated replica. */
export const outdated: FaultPlan = (_, __, body) => {
  if (!JSON.stringify(body).includes('"ConsistentRead":false')) return pass;
  return { kind: "ask", change: (asked) => JSON.parse(JSON.stringify(asked).replaceAll(/#P#\d+"/g, '#P#x"')) };
};

export type FaultyDynamoDb = Awaited<ReturnType<typeof startFaultyDynamoDb>>;

export const TABLE = "Canvassing";
/** The region and the credentials for the local servers, which verify no signature. */
export const LOCAL = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } } as const;
/** Time-outs of the client. They are long, because a busy machine answers many concurrent requests slowly. */
export const patient = { connectMs: 60_000, answerMs: 60_000 } as const;
const JsonBody = z.record(z.string(), z.unknown());

/** Opens a table with the client of the SDK. Each table object has separate caches, so the caches of the new one are empty. */
export const tableAt = (endpoint: string, name = TABLE): Table =>
  openTable(name, dynamoClient({ endpoint, ...LOCAL, ...patient }));

/** Servers of this worker that no test uses at the moment. They end with the process of the worker. */
const idle: ServerWithFile[] = [];

/** Returns a server with an empty table: one that an earlier test of this worker has used, or a new one. */
export async function startFaultyDynamoDb() {
  const server = idle.pop() ?? (await startServerWithFile());
  let plan: FaultPlan = () => pass;
  /** The operation of each request since `plan` was last called, in order. */
  const calls: string[] = [];
  const direct = sendTo(server.endpoint);
  // The service counts the calls of each request to the table. In this snapshot, calls of `meanwhile` do not count for the delayed request.
  const outside = AsyncLocalStorage.snapshot();
  const faulty: Send = (operation, body) => {
    calls.push(operation);
    const fault = plan(operation, calls.length, body);
    return outside(() => apply(fault, operation, body, (changed) => direct(operation, changed)));
  };
  const proxy = await serveOnLoopback(async (request, response) => {
    const operation = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    const { status, content } = await faulty(operation, z.parse(JsonBody, JSON.parse(await text(request))));
    response.writeHead(status, { "Content-Type": "application/x-amz-json-1.0" }).end(content);
  });
  const { endpoint } = proxy;
  await createTable(server.endpoint);
  return {
    /** The proxy, for a client that sends HTTP requests. */
    endpoint,
    /** The table behind the faults, without the proxy. Its client `plainClient` repeats a failed request as the SDK does, but at once. */
    table: openTable(TABLE, plainClient(faulty)),
    /** The same table with the client of the SDK, which waits between attempts and has time-outs. */
    sdk: openTable(TABLE, unsigned(dynamoClient({ endpoint, ...LOCAL, ...patient }))),
    /** The same table without faults. Its client is `plainClient` too. */
    direct: openTable(TABLE, plainClient(direct)),
    directEndpoint: server.endpoint,
    calls,
    plan: (next: FaultPlan): void => {
      plan = next;
      calls.length = 0;
    },
    keysOf: async (partition: string): Promise<Key[]> =>
      storedRows(server.database, TABLE, partition).map(({ pk, sk }) => ({ pk, sk })),
    stop: async (): Promise<void> => {
      proxy.stop();
      const client = new DynamoDBClient({ endpoint: server.endpoint, ...LOCAL });
      // A local service on this server may have left its table. The next service could not decrypt the table's data keys with its own KMS.
      const { TableNames = [] } = await client.send(new ListTablesCommand());
      for (const TableName of TableNames) await client.send(new DeleteTableCommand({ TableName }));
      idle.push(server);
    },
  };
}

/** Makes the client send `SIGNATURE` with all requests, because signing would take a fifth of the time of a request. */
function unsigned(client: DynamoDBDocumentClient): DynamoDBDocumentClient {
  const isSigning = client.middlewareStack.remove("httpSigningMiddleware");
  if (!isSigning) throw new Error("the SDK signs requests in a middleware of another name");
  client.middlewareStack.add(
    (next) => (call) => {
      if (hasHeaders(call.request)) Object.assign(call.request.headers, SIGNATURE);
      return next(call);
    },
    { step: "finalizeRequest" },
  );
  return client;
}

function hasHeaders(request: unknown): request is { headers: Record<string, string> } {
  return typeof request === "object" && request !== null && "headers" in request;
}

/** Returns the error of a lost reply. It has the code with which the SDK reports a connection that breaks before the reply. */
const lostReply = (): Error => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

async function apply(
  fault: Fault,
  operation: string,
  body: Json,
  forward: (body: Json) => Promise<Reply>,
): Promise<Reply> {
  switch (fault.kind) {
    case "error": {
      const type = `com.amazonaws.dynamodb.v20120810#${fault.code}`;
      return { status: fault.status, content: JSON.stringify({ __type: type, message: "as planned" }) };
    }
    case "lose reply":
      await forward(body);
      throw lostReply();
    case "hang":
      return new Promise(() => undefined);
    case "late": {
      const reply = await forward(fault.change?.(body) ?? body);
      await fault.meanwhile();
      return reply;
    }
    case "part": {
      if (operation === "BatchExecuteStatement")
        return { status: 200, content: JSON.stringify(await carryOut(body, fault.share, forward)) };
      const { sent, left } = split(operation, body, fault.share);
      const name = operation === "BatchGetItem" ? "UnprocessedKeys" : "UnprocessedItems";
      if (fault.share === 0) return { status: 200, content: JSON.stringify({ [name]: body.RequestItems }) };
      const { status, content } = await forward(sent);
      return { status, content: JSON.stringify({ ...z.parse(JsonBody, JSON.parse(content)), [name]: left }) };
    }
    case "early":
      await fault.meanwhile();
      return forward(body);
    default:
      return forward(fault.kind === "ask" ? fault.change(body) : body);
  }
}

const Statements = z.object({ Statements: z.array(z.unknown()) });
const Carried = z.looseObject({ Responses: z.array(z.unknown()) });

/** Forwards only a share of a batch of PartiQL statements to DynamoDB. The reply lists the other statements as throttled. */
async function carryOut(body: Json, share: number, forward: (body: Json) => Promise<Reply>): Promise<Json> {
  const all = z.parse(Statements, body).Statements;
  const sent = all.slice(0, share === 0 ? 0 : Math.max(1, Math.floor(all.length * share)));
  const throttled = all.slice(sent.length).map(() => ({ Error: { Code: "ThrottlingError", Message: "as planned" } }));
  if (sent.length === 0) return { Responses: throttled };
  const carried = z.parse(Carried, JSON.parse((await forward({ ...body, Statements: sent })).content));
  return { ...carried, Responses: [...carried.Responses, ...throttled] };
}

const Gets = z.object({ RequestItems: z.record(z.string(), z.looseObject({ Keys: z.array(z.unknown()) })) });
const Writes = z.object({ RequestItems: z.record(z.string(), z.array(z.unknown())) });

function split(operation: string, body: Json, share: number): { sent: Json; left: Json } {
  const cut = <T>(entries: readonly T[]): [T[], T[]] => {
    const count = Math.max(1, Math.floor(entries.length * share));
    return [entries.slice(0, count), entries.slice(count)];
  };
  if (operation === "BatchGetItem") {
    const [table] = Object.values(z.parse(Gets, body).RequestItems);
    const [sent, left] = cut(table?.Keys ?? []);
    const rest = left.length === 0 ? {} : { [TABLE]: { ...table, Keys: left } };
    return { sent: { ...body, RequestItems: { [TABLE]: { ...table, Keys: sent } } }, left: rest };
  }
  const [sent, left] = cut(Object.values(z.parse(Writes, body).RequestItems)[0] ?? []);
  return { sent: { ...body, RequestItems: { [TABLE]: sent } }, left: left.length === 0 ? {} : { [TABLE]: left } };
}

export async function createTable(endpoint: string, name = TABLE): Promise<void> {
  const text = (AttributeName: string) => ({ AttributeName, AttributeType: "S" as const });
  const key = (partition: string, sort: string) => [
    { AttributeName: partition, KeyType: "HASH" as const },
    { AttributeName: sort, KeyType: "RANGE" as const },
  ];
  const client = new DynamoDBClient({ endpoint, ...LOCAL });
  await client.send(
    new CreateTableCommand({
      TableName: name,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: ["pk", "sk", DUE_INDEX.partitionKey, DUE_INDEX.sortKey].map(text),
      KeySchema: key("pk", "sk"),
      GlobalSecondaryIndexes: [
        {
          IndexName: DUE_INDEX.name,
          KeySchema: key(DUE_INDEX.partitionKey, DUE_INDEX.sortKey),
          Projection: { ProjectionType: "KEYS_ONLY" },
        },
      ],
    }),
  );
}
