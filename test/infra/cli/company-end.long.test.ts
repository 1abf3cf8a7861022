/** Tests how a company leaves the service (docs/keep.md). The commands find a local service through a simulated AWS account. */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ListObjectsV2Command } from "@aws-sdk/client-s3";
import { paginateScan } from "@aws-sdk/lib-dynamodb";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import { openTable } from "#shared/db/table.ts";
import { apiClient } from "../../../docs/client/client.ts";
import { QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { keyOfRow } from "../../../infra/cli/company/rows.ts";
import { localToken } from "../../../infra/local/local-token.ts";
import { documentsAt, s3At } from "../../../infra/local/servers/clients.ts";
import { startAccountEndpoint } from "../../harness/account-endpoint.ts";
import { createTable } from "../../harness/faulty-dynamodb.ts";
import { outputsOf } from "../../harness/local-outputs.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { dataOf } from "../../harness/shapes.ts";
import { start } from "../local/start-process.ts";
import { FAST_SCALE, startOnAccount } from "./command-process.ts";

/** The first Retry-After of the receiver. The refused delivery's message waits in SQS for this time, and SQS allows at most 900 seconds. */
const RETRY_AFTER_SECONDS = 600;
/** The table that the service used before a switch to the present one. */
const OLD_TABLE = "Canvassing-old";
const since = Date.now();
const directory = mkdtempSync(join(tmpdir(), "canvassing-end-"));

const service = start([], { DATA_DIR: directory, LOCAL_TIME_SCALE: String(FAST_SCALE) });
afterAll(() => service.child.kill("SIGKILL"));
const url = await service.ready;
const outputs = await outputsOf(url);
await createTable(outputs.DynamoDbEndpoint, OLD_TABLE);
const account = await startAccountEndpoint({ ...outputs, OwnTableName: OLD_TABLE });
afterAll(() => account.stop());

const run = (file: string, args: readonly string[]) => startOnAccount(account, file, args, since).ended;

async function succeed(file: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(file, args);
  expect(code, stderr).toBe(0);
  return stdout;
}

type Company = Awaited<ReturnType<typeof company>>;

/**
 * Creates a company with a rep, a prospect, an export and a webhook. The receiver of the webhook refuses all deliveries until `repair` is
 * called.
 */
async function company(name: string) {
  const email = `owner@${name}.test`;
  const created = await succeed("company", "create", "--name", name, "--owner", email);
  const id = Number(/^company (\d+) /.exec(created)?.[1]);
  const token = await localToken(url, email);
  const owner = apiClient({ baseUrl: url, accessToken: () => token });
  const rep = { email: `rep@${name}.test`, firstName: "Rita", lastName: name, role: "sales" as const };
  dataOf(await owner.POST("/api/users", { body: rep }), 201);
  account.users.set(rep.email, subjectOf(await localToken(url, rep.email)));
  let isRepaired = false;
  // Retry-After grows with each attempt. Otherwise a slow machine would use up all attempts before the test calls `repair`.
  const receiver = await startReceiver((_, response, count) => {
    response.writeHead(isRepaired ? 200 : 503, { "Retry-After": count * RETRY_AFTER_SECONDS }).end();
  });
  onTestFinished(() => receiver.close());
  const webhook = { name, url: receiver.url, registrations: [{ event: "note.created" as const }] };
  const { id: webhookId } = dataOf(await owner.POST("/api/webhooks", { body: webhook }), 201);
  const prospect = dataOf(await owner.POST("/api/prospects", { body: { name: `prospect of ${name}` } }), 201);
  const exported = dataOf(await owner.POST("/api/prospects/exports", { body: {} }), 201);
  const params = { path: { id: exported.id } };
  const stateOf = async () => dataOf(await owner.GET("/api/prospects/exports/{id}", { params }), 200).state;
  await vi.waitUntil(async () => (await stateOf()) === "completed", patient);
  /** Adds a note, and waits until the receiver has refused its webhook delivery for the first time. */
  const addNote = async (): Promise<void> => {
    const path = { id: prospect.id };
    const body = { body: `note of ${name}` };
    dataOf(await owner.POST("/api/prospects/{id}/notes", { params: { path }, body }), 201);
    await receiver.until(1);
  };
  const repair = (): void => {
    isRepaired = true;
  };
  return { id, name, owner, webhookId, receiver, addNote, repair };
}

const Claims = z.object({ sub: z.string() });
const subjectOf = (token: string): string =>
  Claims.parse(JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString())).sub;

const patient = { timeout: 120_000, interval: 50 };

const documents = () => documentsAt(outputs.DynamoDbEndpoint);

/** Returns everything that refers to the company: rows of both tables, keys of files, messages, and users of the user pool. */
async function traces({ id, name }: Company) {
  const isOf = (text: string): boolean =>
    text.includes(name) || new RegExp(`C#${id}#|COMPANY#${id}\\b|/${id}/|"companyId":${id}\\b`).test(text);
  const rowsOf = async (TableName: string): Promise<Item[]> => {
    const pages = await Array.fromAsync(paginateScan({ client: documents() }, { TableName }));
    return pages.flatMap(({ Items = [] }) => Items).filter((row) => isOf(JSON.stringify(row)));
  };
  const s3 = s3At(outputs.S3Endpoint);
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: outputs.BucketName }));
  const files = Contents.map(({ Key = "" }) => Key).filter(isOf);
  const store = new DatabaseSync(join(directory, "queues/fauxqs.db"), { readOnly: true });
  const messages = store
    .prepare("SELECT body FROM sqs_messages")
    .all()
    .map(({ body }) => String(body))
    .filter(isOf);
  store.close();
  const rows = await rowsOf(outputs.TableName);
  return { rows, oldRows: await rowsOf(OLD_TABLE), files, messages, users: [...account.users.keys()].filter(isOf) };
}

/** Returns the rows that only users change. The service itself may change other rows, for example those of deliveries. */
const lasting = ({ rows }: { readonly rows: readonly Item[] }): Item[] =>
  rows
    .filter(({ type }) => /^(?:company|user|identity|status|tag|prospect|note|email)$/.test(String(type)))
    .toSorted((one, other) => `${one.pk} ${one.sk}`.localeCompare(`${other.pk} ${other.sk}`));

const Report = z.object({
  company: z.int(),
  rowsLeft: z.record(z.string(), z.int()),
  otherTables: z.record(z.string(), z.record(z.string(), z.int())),
  filesLeft: z.int(),
});

test("a deleted company leaves nothing in table, bucket, queues and user pool", async () => {
  const [gone, kept] = [await company("gone"), await company("kept")];
  const N = ["--company", String(gone.id)];
  const deletion = ["company", "delete", ...N, "--confirm", "gone"] as const;
  await gone.addNote();
  const full = await traces(gone);
  expect(full.users).toEqual(["owner@gone.test", "rep@gone.test"]);
  expect(full.files).toHaveLength(1);
  expect(full.messages.length).toBeGreaterThan(0);
  expect(await run("company", deletion.slice(1))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is active"),
  });

  expect(await succeed("company", "suspend", ...N)).toContain("the API refuses requests of its 2 users");
  await fetch(`${url}/local/authorizers-cache`, { method: "DELETE" });
  expect((await gone.owner.GET("/api/me")).response.status).toBe(401);
  const exported = JSON.parse(await succeed("company", "export", ...N));
  expect(exported).toMatchObject({ counts: { prospect: 1, note: 1, user: 2 } });
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS / FAST_SCALE));
  await kept.addNote();
  const before = await traces(kept);
  const old = openTable(OLD_TABLE, documents());
  const copied = [...full.rows, ...before.rows];
  for (const row of copied) await old.batchPut([{ ...row, ...keyOfRow(row) }]);
  expect((await traces(gone)).oldRows).toHaveLength(full.rows.length);
  // The deliverer cancels the waiting delivery when its message becomes visible. On a busy machine, this takes longer than the wait of the
  // deletion, so the test kills the deletion during its wait and repeats it later.
  const { child, ended } = startOnAccount(account, "company", deletion.slice(1), since);
  child.stderr?.on("data", (text: Buffer) => {
    if (text.includes("until the last deliveries have ended")) child.kill("SIGKILL");
  });
  expect(await ended).toMatchObject({ code: null });
  await vi.waitUntil(async () => (await traces(gone)).messages.length === 0, patient);
  await succeed(...deletion);
  const left = await traces(gone);
  expect(left).toMatchObject({ files: [], messages: [], users: [] });
  for (const rows of [left.rows, left.oldRows]) {
    expect(rows).toEqual([expect.objectContaining({ type: "erasure", companyId: gone.id })]);
  }
  expect(Report.parse(JSON.parse(await succeed("company", "check", ...N)))).toEqual({
    company: gone.id,
    rowsLeft: {},
    otherTables: { [OLD_TABLE]: {} },
    filesLeft: 0,
  });
  expect((await gone.owner.GET("/api/me")).response.status).toBe(401);

  const after = await traces(kept);
  expect(lasting(after)).toEqual(lasting(before));
  expect(lasting(after).length).toBeGreaterThan(15);
  expect(after.oldRows).toHaveLength(before.rows.length);
  expect([after.files, after.users]).toEqual([before.files, before.users]);
  const sent = gone.receiver.receipts.length;
  kept.repair();
  await vi.waitUntil(async () => (await traces(kept)).messages.length === 0, patient);
  const params = { path: { id: kept.webhookId } };
  const { items } = dataOf(await kept.owner.GET("/api/webhooks/{id}/deliveries", { params }), 200);
  expect(items).toMatchObject([{ event: "note.created", status: "delivered" }]);
  expect(dataOf(await kept.owner.GET("/api/prospects"), 200).total).toBe(1);
  expect(gone.receiver.receipts.length).toBe(sent);
  const logged = readFileSync(join(directory, "service.log"), "utf8");
  expect(logged).toContain('"level"');
  expect(logged).not.toContain("delivery missing");
});

test("a suspended company is not deleted at once, but resumed; a check finds its rows, and no company with a mistyped id", async () => {
  const { id } = await company("tested");
  const N = ["--company", String(id)];
  const text = `company ${id} is suspended: the API refuses requests of its 2 users\n`;
  expect(await succeed("company", "suspend", ...N)).toBe(text);
  const early = await run("company", ["delete", ...N, "--confirm", "tested"]);
  const refusal = expect.stringMatching(/\n.* may run until 20\S+Z: try again then\n$/);
  expect(early).toMatchObject({ code: 1, stderr: refusal });
  expect(await succeed("company", "resume", ...N)).toBe(
    `company ${id} is active: the API accepts requests of its 2 users\n`,
  );
  const { code, stdout } = await run("company", ["check", ...N]);
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { erasedAt: null, rowsLeft: { company: 1, user: 2 } }]);
  const unknown = await run("company", ["check", "--company", "9999999"]);
  expect(unknown).toMatchObject({ code: 1, stdout: "" });
  expect(unknown.stderr).toContain("no erasure of it is recorded");
});
