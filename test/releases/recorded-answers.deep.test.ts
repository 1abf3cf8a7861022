/** Tests the API with rows that the last release has written. The answers must contain the same values as the answers of that release. */

import { expect, inject, test } from "vitest";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openTable } from "#shared/db/table.ts";
import { alive, lastShapes } from "./recorded.ts";

const base = inject("baseUrl");
const Outputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });

/** Removes the state of invitations from an answer, because it depends on the time. */
const timeless = (answer: unknown): unknown =>
  JSON.parse(JSON.stringify(answer), (name, value: unknown) => (name.startsWith("invitation") ? undefined : value));

test("rows of the last release are shown as before", async () => {
  const { rows, owner, answers } = lastShapes();
  const { TableName, DynamoDbEndpoint } = Outputs.parse(await (await fetch(`${base}/local/outputs`)).json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: DynamoDbEndpoint, region: "us-east-1", credentials });
  await openTable(TableName, client).batchPut(alive(rows));
  const signIn = await fetch(`${base}/local/token`, { method: "POST", body: JSON.stringify({ email: owner }) });
  const headers = { Authorization: `Bearer ${(await signIn.text()).trim()}` };
  for (const [path, recorded] of Object.entries(answers)) {
    const answer = await fetch(`${base}${path}`, { headers });
    expect(answer.status, path).toBe(200);
    const body: unknown = await answer.json();
    // `toMatchObject` allows additional fields, because the current API may have new fields.
    expect(timeless({ body }), path).toMatchObject({ body: timeless(recorded) });
  }
});
