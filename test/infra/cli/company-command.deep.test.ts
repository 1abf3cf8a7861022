/** Tests `npm run company` on a running service: suspend, resume, export, check, and a delete that is refused. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { GetObjectCommand } from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { s3Client } from "#shared/aws/s3.ts";
import { baseUrl } from "../../harness/client.ts";
import { dataOf, present } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";

function run(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const { hostname: HOST, port: PORT } = new URL(baseUrl());
  const file = join(import.meta.dirname, "../../../infra/cli/company.ts");
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { env: { ...process.env, HOST, PORT } }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

const as = await newTeam();
const { company } = dataOf(await as.owner.GET("/api/me"), 200);
const number = String(company.id);
const forget = () => fetch(`${baseUrl()}/local/authorizers-cache`, { method: "DELETE" });

const Outputs = z.object({ S3Endpoint: z.string(), BucketName: z.string() });
const Report = z.object({ manifest: z.string(), counts: z.record(z.string(), z.int()) });
const Manifest = z.object({ parts: z.array(z.object({ key: z.string(), lines: z.int() })) });

test("export writes the company's rows to the bucket, also a prospect of the current shape", async () => {
  dataOf(await as.owner.POST("/api/prospects", { body: { name: "Exported Ann", phoneNumber: "555 0100" } }), 201);
  const { code, stdout, stderr } = await run("export", "--company", number);
  expect(code, stderr).toBe(0);
  const { manifest, counts } = Report.parse(JSON.parse(stdout));
  expect(counts).toMatchObject({ company: 1, user: 6, prospect: 1 });
  const { S3Endpoint, BucketName } = Outputs.parse(await (await fetch(`${baseUrl()}/local/outputs`)).json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const s3 = s3Client({ endpoint: S3Endpoint, region: "us-east-1", credentials });
  const read = async (Key: string) =>
    Buffer.from(
      present(await (await s3.send(new GetObjectCommand({ Bucket: BucketName, Key }))).Body?.transformToByteArray()),
    );
  const { parts } = Manifest.parse(JSON.parse(String(await read(manifest.replace(`s3://${BucketName}/`, "")))));
  const texts = await Promise.all(parts.map(async ({ key }) => gunzipSync(await read(key)).toString()));
  const lines = texts.join("").trimEnd().split("\n");
  const prospect: unknown = JSON.parse(present(lines.find((line) => line.includes("Exported Ann"))));
  expect(prospect).toMatchObject({
    type: "prospect",
    name: "Exported Ann",
    phoneNumber: expect.stringContaining("0100"),
  });
});

test("a suspended company's users are refused until it is resumed, and it cannot be deleted at once", async () => {
  const suspended = await run("suspend", "--company", number);
  expect(suspended).toMatchObject({
    code: 0,
    stdout: `company ${number} is suspended: the API refuses requests of its 6 users\n`,
  });
  await forget();
  expect((await as.owner.GET("/api/me")).response.status).toBe(401);
  expect((await as.otherOwner.GET("/api/me")).response.status).toBe(200);
  const early = await run("delete", "--company", number, "--confirm", company.name);
  expect(early.code).toBe(1);
  expect(early.stderr).toMatch(
    /^target: local service at http:\S+\nrequests from before the suspension may run until 20\S+Z: try again then\n$/,
  );
  const resumed = await run("resume", "--company", number);
  expect(resumed).toMatchObject({
    code: 0,
    stdout: `company ${number} is active: the API accepts requests of its 6 users\n`,
  });
  expect((await as.owner.GET("/api/me")).response.status).toBe(200);
});

test("check counts what the company has", async () => {
  const found = await run("check", "--company", number);
  expect(found.code).toBe(1);
  expect(JSON.parse(found.stdout)).toMatchObject({ erasedAt: null, rowsLeft: { company: 1, user: 6 } });
});

test("check of an id that no company ever had is no proof of an erasure", async () => {
  const unknown = await run("check", "--company", "9999999");
  expect(unknown).toMatchObject({ code: 1, stdout: "" });
  expect(unknown.stderr).toContain("there is no company 9999999, and no erasure of it is recorded: check the id\n");
});
