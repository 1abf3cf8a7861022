/**
 * Imports a file with one very long line in a separate process. Returns the result, the rows and files that remain, and the peak memory.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod/mini";
import type { Links } from "#shared/aws/links.ts";
import { systemClock } from "#shared/clock.ts";
import { beginImport, findImport, summaryOf } from "#shared/jobs/import/requests.ts";
import type { ImportSummary } from "#shared/jobs/import/schema.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { startQueues } from "../../infra/local/engines/queues.ts";
import { startFaultyDynamoDb, TABLE } from "../harness/faulty-dynamodb.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

export const HEAP_MB = 256;

export interface Outcome {
  readonly summary: ImportSummary;
  /** Keys of the rows that the import has added and not deleted, and of all files that are still in the bucket. */
  readonly leftovers: readonly string[];
  /** Number of messages that the function returned to the queue as failed. */
  readonly failed: number;
  readonly peakBytes: number;
}

const Run = z.object({ failed: z.int(), peakBytes: z.number() });

const link = async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" });
const links: Links = { upload: link, download: link };
const BUCKET = "files";
const MB = 1_000_000;
const PART_BYTES = 8 * MB;

export async function importOneLine(megabytes: number): Promise<Outcome> {
  const [db, queues] = [await startFaultyDynamoDb(), await startQueues()];
  try {
    const context = warmFunction(db, systemClock);
    const company = await newCompany(context);
    const { companyId } = company.caller;
    const { id } = await beginImport(context, links, company.caller, {});
    const key = importKeys.uploaded(companyId, id);
    await call(`${queues.endpoint}/${BUCKET}`, "PUT");
    await upload(`${queues.endpoint}/${BUCKET}/${key}`, megabytes * MB);

    const before = new Set((await db.keysOf(`C#${companyId}#`)).map(({ pk, sk }) => `${pk} ${sk}`));
    const run = await inOwnProcess(key, db.directEndpoint, queues.endpoint);

    const rows = (await db.keysOf(`C#${companyId}#`)).map(({ pk, sk }) => `${pk} ${sk}`);
    const files = [...(await call(`${queues.endpoint}/${BUCKET}?list-type=2`, "GET")).matchAll(/<Key>([^<]+)</g)];
    const leftovers = [...rows.filter((row) => !before.has(row)), ...files.map(([, name = ""]) => name)];
    return { ...run, summary: summaryOf(await findImport(context, companyId, id)), leftovers };
  } finally {
    await queues.stop();
    await db.stop();
  }
}

async function inOwnProcess(key: string, dynamoDb: string, s3: string): Promise<z.infer<typeof Run>> {
  const env = {
    ...process.env,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_ENDPOINT_URL_DYNAMODB: dynamoDb,
    AWS_ENDPOINT_URL_S3: s3,
    AWS_ENDPOINT_URL_SQS: s3,
    TABLE_NAME: TABLE,
    BUCKET_NAME: BUCKET,
    IMPORT_QUEUE_URL: `${s3}/000000000000/imports`,
    LOG_LEVEL: "fatal",
  };
  const script = join(import.meta.dirname, "import-process.ts");
  const flags = [`--max-old-space-size=${HEAP_MB}`];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, script, key], { env });
  return Run.parse(JSON.parse(stdout.slice(stdout.lastIndexOf("\n") + 1)));
}

/** Uploads the file in parts, so that the whole file is never in memory. */
async function upload(url: string, bytes: number): Promise<void> {
  const uploadId = /<UploadId>([^<]+)</.exec(await call(`${url}?uploads=`, "POST"))?.[1] ?? "";
  const part = Buffer.alloc(PART_BYTES, "a");
  const header = Buffer.from("name,lat,lng\n");
  const tags: string[] = [];
  for (let at = 0; at < bytes; at += PART_BYTES) {
    const body = at === 0 ? Buffer.concat([header, part]) : part.subarray(0, bytes - at);
    const answer = await fetch(`${url}?partNumber=${tags.length + 1}&uploadId=${uploadId}`, { method: "PUT", body });
    await answer.text();
    tags.push(answer.headers.get("etag") ?? "");
  }
  const list = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`).join("");
  await call(`${url}?uploadId=${uploadId}`, "POST", `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`);
}

async function call(url: string, method: string, body?: string): Promise<string> {
  const answer = await fetch(url, { method, ...(body !== undefined && { body }) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the bucket answered ${answer.status}: ${text}`);
  return text;
}
