/**
 * Runs as a separate process that creates prospects concurrently and prints their ids. It simulates a second function with its own
 * memory.
 */

import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { contextOn } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { patient, TABLE } from "../harness/faulty-dynamodb.ts";
import { createProspect } from "../harness/verbs.ts";

const [endpoint = "", companyId, userId, count] = process.argv.slice(2);
const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const context = contextOn(openTable(TABLE, dynamoClient({ endpoint, region: "us-east-1", credentials, ...patient })));
const caller = { companyId: Number(companyId), userId: Number(userId), role: "owner", permissions: [] } as const;
const made = await Promise.all(Array.from({ length: Number(count) }, () => createProspect(context, caller, {})));
console.log(JSON.stringify(made.map(({ id }) => id)));
