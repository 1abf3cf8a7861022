/** Calls of DynamoDB as the access layer makes them: whatever stands in items is left to those who read them. */
import * as z from "zod/mini";
import { type AwsCall, awsCall, type CallSettings } from "#shared/aws/json-call.ts";
import type { Attributes } from "#shared/db/attributes.ts";
import { count } from "#shared/db/meter.ts";

/** Each call ends: short time limits, a few tries of its own. */
export const dynamoClient = (settings: CallSettings = {}): AwsCall => awsCall("dynamodb", settings);

/** Not looked into: a long answer has thousands of them. */
export const StoredAttributes = z.custom<Attributes>((value) => typeof value === "object" && value !== null);

interface Capacity {
  readonly CapacityUnits?: number;
}

/** What the answers of the operations have, as DynamoDB documents them. */
export interface Answer {
  readonly Item?: Attributes;
  readonly Items?: readonly Attributes[];
  readonly Attributes?: Attributes;
  readonly LastEvaluatedKey?: Attributes;
  /** Of a batch of keys by their table, of a batch of statements in their order. */
  readonly Responses?: Record<string, readonly Attributes[]> | Carried[];
  readonly UnprocessedKeys?: Readonly<Record<string, { readonly Keys: Attributes[] }>>;
  readonly UnprocessedItems?: Readonly<Record<string, readonly Unprocessed[]>>;
  readonly ConsumedCapacity?: Capacity | Capacity[];
}

interface Carried {
  readonly Error?: { readonly Code: string; readonly Message?: string };
}

interface Unprocessed {
  readonly PutRequest?: { readonly Item: Attributes };
  readonly DeleteRequest?: { readonly Key: Attributes };
}

/** Its fields are not looked into: a page of a list would take longer to look through than to read. */
const Answer = z.custom<Answer>((value) => typeof value === "object" && value !== null);

type Operation =
  | "GetItem"
  | "PutItem"
  | "UpdateItem"
  | "Query"
  | "TransactWriteItems"
  | "BatchGetItem"
  | "BatchWriteItem"
  | "BatchExecuteStatement";
const reads: ReadonlySet<Operation> = new Set(["GetItem", "Query", "BatchGetItem"]);

/** One request, which is counted. */
export const ask = (call: AwsCall, operation: Operation, input: object): Promise<Answer> =>
  count(reads.has(operation) ? "read" : "write", async () => Answer.parse(await call(operation, input)));
