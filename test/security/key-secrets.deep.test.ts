/**
 * Tests that only the answers to requests for a new or rotated API key, and to their repetitions, contain the secret of the key.
 * local-service.ts of the harness checks the logs.
 */
import { gunzipSync } from "node:zlib";
import { GetObjectCommand } from "@aws-sdk/client-s3";
import { paginateScan } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { documentsAt, s3At } from "../../infra/local/servers/clients.ts";
import { type Answer, at, baseUrl, clientWith, json } from "../harness/client.ts";
import { outputsOf } from "../harness/local-outputs.ts";
import { dataOf, present, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { runOnService } from "../infra/cli/command-process.ts";

const as = await newTeam();
const outputs = await outputsOf(baseUrl());

/** The secrets of all API keys of this test, in the forms in which they could be stored or answered. */
const secrets = new Set<string>();
function collect(key: string): void {
  const secret = key.slice(13, 45);
  for (const encoding of ["base64", "hex"] as const)
    secrets.add(Buffer.from(secret).toString(encoding).replaceAll("=", ""));
  secrets.add(secret);
}
const leaked = (text: string): string[] => [...secrets].filter((secret) => text.includes(secret));

const Shown = z.object({ id: z.string(), key: z.string() });
const post = async (path: string, key: string, body: unknown): Promise<Answer> =>
  as.owner.send("POST", path, { headers: { ...json, "Idempotency-Key": key }, body: JSON.stringify(body) });

/** Creates API keys in every way, also twice with one idempotency key, and uses them in requests that succeed and that fail. */
async function useKeys(): Promise<number> {
  const body = { name: "program", role: "admin" as const };
  const { id } = dataOf(await as.owner.POST("/api/service-accounts", { body }), 201);
  const path = `/api/service-accounts/${id}/keys`;
  const fields = { name: "k", scopes: ["prospects:read", "prospects:write", "keys:manage"] };
  const first = Shown.parse((await post(path, "same", fields)).body);
  expect(Shown.parse((await post(path, "same", fields)).body)).toEqual(first);
  const rotated = Shown.parse((await post(`${path}/${first.id}/rotate`, "r", { overlapSeconds: 60 })).body);
  problemOf(await post(path, "wrong", { ...fields, scopes: ["none"] }), 400, "validation_failed");
  for (const key of [first.key, rotated.key]) {
    collect(key);
    const client = clientWith(async () => key);
    dataOf(await client.POST("/api/prospects", { body: { name: "Door" } }), 201);
    problemOf(await client("GET", `/api/prospects/${key}`), 400, "validation_failed");
    problemOf(await client("GET", "/api/webhooks"), 403, "insufficient_scope");
    problemOf(await client("POST", "/api/prospects", { name: 7, phoneNumber: 1 }), 400, "validation_failed");
    problemOf(await clientWith(async () => `${key}0`)("GET", "/api/me"), 401, "unauthenticated");
  }
  return id;
}

async function exportedLines(company: number): Promise<string> {
  const { code, stdout, stderr } = await runOnService("company.ts", "export", "--company", String(company));
  expect(code, stderr).toBe(0);
  const { manifest } = z.object({ manifest: z.string() }).parse(JSON.parse(stdout));
  const s3 = s3At(outputs.S3Endpoint);
  const read = async (Key: string) => {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: outputs.BucketName, Key }));
    return Buffer.from(present(await Body?.transformToByteArray()));
  };
  const Parts = z.object({ parts: z.array(z.object({ key: z.string() })) });
  const { parts } = Parts.parse(JSON.parse(String(await read(manifest.replace(`s3://${outputs.BucketName}/`, "")))));
  const texts = await Promise.all(parts.map(async ({ key }) => gunzipSync(await read(key)).toString()));
  return texts.join("");
}

/** Yields the rows of the company and of all API keys as JSON. Binary values are decoded as Latin-1, so that a secret in them is found. */
async function* storedTexts(company: number): AsyncGenerator<string> {
  const client = documentsAt(outputs.DynamoDbEndpoint);
  const filter = {
    FilterExpression: "begins_with(pk, :company) OR begins_with(pk, :keys) OR companyId = :id",
    ExpressionAttributeValues: { ":company": `C#${company}#`, ":keys": "K#", ":id": company },
  };
  const bytes = (_: string, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value;
  for await (const { Items = [] } of paginateScan({ client }, { TableName: outputs.TableName, ...filter })) {
    for (const item of Items) yield JSON.stringify(item, bytes);
  }
}

test("the secret of a key is only in the answer that shows it", async () => {
  const id = await useKeys();
  expect(secrets.size).toBe(6);
  const lists = ["/api/me", "/api/users", "/api/prospects", "/api/prospects/export", "/api/changes"];
  for (const path of [...lists, `/api/service-accounts/${id}`, `/api/service-accounts/${id}/keys`]) {
    const { status, text } = await as.owner("GET", path);
    expect([status, leaked(text)], path).toEqual([200, []]);
  }
  const { company } = dataOf(await as.owner.GET("/api/me"), 200);
  let rows = 0;
  for await (const text of storedTexts(company.id)) {
    rows++;
    expect(leaked(text), text.slice(0, 100)).toEqual([]);
  }
  expect(rows).toBeGreaterThan(10);
  const lines = await exportedLines(company.id);
  expect(lines).toContain('"type":"keyRing"');
  expect(leaked(lines)).toEqual([]);
  dataOf(await as.owner.DELETE("/api/service-accounts/{id}", at(id)));
});
