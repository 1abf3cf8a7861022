/** Tests that `npm run company` exports a company of a running service. */
import { gunzipSync } from "node:zlib";
import { GetObjectCommand } from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { s3Client } from "#shared/aws/s3.ts";
import { baseUrl } from "../../harness/client.ts";
import { dataOf, present } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { runOnService } from "./command-process.ts";

const as = await newTeam();
const { company } = dataOf(await as.owner.GET("/api/me"), 200);
const number = String(company.id);

const Outputs = z.object({ S3Endpoint: z.string(), BucketName: z.string() });
const Report = z.object({ manifest: z.string(), counts: z.record(z.string(), z.int()) });
const Manifest = z.object({ parts: z.array(z.object({ key: z.string(), lines: z.int() })) });

test("export writes the company's rows to the bucket, also a prospect of the current shape", async () => {
  dataOf(await as.owner.POST("/api/prospects", { body: { name: "Exported Ann", phoneNumber: "555 0100" } }), 201);
  const { status, stdout, stderr } = await runOnService("company.ts", "export", "--company", number);
  expect(status, stderr).toBe(0);
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
