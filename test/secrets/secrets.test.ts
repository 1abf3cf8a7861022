/** Tests the encryption of secrets: it binds a secret to its row, and uses a data key of the company, which functions cache. */
import { createSecretKey, hkdfSync, randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { openKms } from "#shared/aws/kms.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import type { Table } from "#shared/db/table.ts";
import type { Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { open, openSecrets, StoredDataKey, seal } from "#shared/secrets/key-service.ts";
import { NotSealed, type Secrets } from "#shared/secrets/secrets.ts";
import { openTokens, sessionRow } from "#shared/sessions/stored.ts";
import { openedSecrets } from "#shared/webhooks/subscriptions/secret.ts";
import { listWebhooks, readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import * as webhooks from "#shared/webhooks/subscriptions/write.ts";
import { startKms } from "../../infra/local/engines/kms.ts";
import { keyArn } from "../../infra/local/template/names.ts";
import { commanded } from "../harness/commanded.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import { createWebhook } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { drain, newPipeline, publish } from "../webhooks/pipeline.ts";
import { deliveries } from "../webhooks/stored-deliveries.ts";

const ARN = keyArn("Own");
const db = faultyDynamoDb();
const kms = await startKms(undefined);
afterAll(() => kms.stop());
process.env.WEBHOOK_URL_POLICY = "local";
beforeEach(() => {
  kms.serve([ARN]);
  kms.calls.length = 0;
});

const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const service = () => openKms(ARN, { endpoint: kms.endpoint, region: "us-east-1", credentials });
let clock = 0;
/** Returns the secrets module of a newly started function, which has no data key in memory. */
const secretsOn = (table: Table): Secrets => openSecrets(table, service, () => clock);
const worldWith = (table: Table, secrets = secretsOn(table)): ApiContext => ({ ...contextOn(table), secrets });

const newCompany = async (): Promise<number> => (await newOwner(contextOn(db.direct))).companyId;
const input = { name: "x", url: "http://127.0.0.1:1/", registrations: [] };

/** Returns all rows as text. Bytes are decoded as Latin-1, so that a plain secret in a binary field is found. */
async function allOf(companyId: number): Promise<string> {
  const items: unknown[] = [];
  for (const key of await db.keysOf(`C#${companyId}#`)) items.push(await db.direct.get(key));
  return JSON.stringify(items, (_, value: unknown) => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).toSorted(([x], [y]) => (x < y ? -1 : 1)));
  });
}

const secretsIn = async (companyId: number, id: number, secrets = secretsOn(db.direct)) =>
  openedSecrets(secrets, (await readWebhook(contextOn(db.direct), companyId, id)).webhook);

test("sealed text opens with its key for its row, and not with another key, for another row or with a changed bit", () => {
  const [key, other] = [createSecretKey(randomBytes(32)), createSecretKey(randomBytes(32))];
  const rows = fc.record({ pk: fc.string(), sk: fc.string() });
  const texts = fc.string({ unit: "binary" });
  fc.assert(
    fc.property(texts, rows, rows, fc.nat(), (plain, row, otherRow, bit) => {
      fc.pre(row.pk !== otherRow.pk || row.sk !== otherRow.sk);
      const sealed = seal(key, row, plain);
      expect(open(key, row, sealed)).toBe(plain);
      expect(() => open(other, row, sealed)).toThrow();
      expect(() => open(key, otherRow, sealed)).toThrow();
      const at = bit % (sealed.length * 8);
      const changed = Uint8Array.from(sealed, (byte, i) => (i === at >> 3 ? byte ^ (1 << (at & 7)) : byte));
      expect(() => open(key, row, changed)).toThrow();
      expect(() => open(key, row, sealed.subarray(0, at >> 3))).toThrow();
    }),
  );
});

test("twenty functions that create a company's first secrets concurrently use one data key", async () => {
  const companyId = await newCompany();
  const functions = Array.from({ length: 20 }, () => secretsOn(db.direct));
  const place = (i: number) => ({ pk: `C#${companyId}#T`, sk: `${i}` });
  const sealed = await Promise.all(functions.map((secrets, i) => secrets.seal(companyId, place(i), `secret ${i}`)));
  const reader = secretsOn(db.direct);
  for (const [i, bytes] of sealed.entries()) expect(await reader.open(companyId, place(i), bytes)).toBe(`secret ${i}`);
  expect(await db.keysOf(keys.dataKey(companyId, "webhook-secrets").pk)).toHaveLength(1);
});

test("sessions have a data key of their own, which webhooks cannot use; sessions from before it end", async () => {
  const companyId = await newCompany();
  const secrets = secretsOn(db.direct);
  const digest = "digest";
  const before = await secrets.seal(companyId, keys.session(digest), JSON.stringify({ access: "old" }));
  const begun = { digest, caller: { companyId, userId: 1 }, clientId: "console", endsAt: 2 };
  const tokens = { access: "new", refresh: undefined, accessUntil: 1 };
  const session = await sessionRow(secrets, { ...begun, tokens });
  expect(await openTokens(secretsOn(db.direct), digest, session)).toEqual({ access: "new" });
  await expect(openTokens(secrets, digest, { ...session, tokens: before })).rejects.toMatchObject({
    code: "unauthenticated",
  });
  await expect(secrets.open(companyId, keys.session(digest), session.tokens)).rejects.toThrow(NotSealed);
  const { wrapped } = StoredDataKey.parse(await db.direct.get(keys.dataKey(companyId, "console-sessions")));
  const context = (purpose: string) => ({ purpose, companyId: String(companyId) });
  expect(await service().unwrap(wrapped, context("console-sessions"))).toHaveLength(32);
  await expect(service().unwrap(wrapped, context("webhook-secrets"))).rejects.toMatchObject({
    name: "InvalidCiphertextException",
  });
});

test("a warm function calls the key service once an hour for each company", async () => {
  const [one, two] = [await newCompany(), await newCompany()];
  const made = await Promise.all([one, two].map((id) => createWebhook(worldWith(db.direct), id, input)));
  expect(kms.calls).toEqual(["GenerateDataKey", "GenerateDataKey"]);
  kms.calls.length = 0;
  const secrets = secretsOn(db.direct);
  const openAll = () =>
    Promise.all(
      made.flatMap(({ companyId, id }) => Array.from({ length: 100 }, () => secretsIn(companyId, id, secrets))),
    );
  await openAll();
  expect(kms.calls).toEqual(["Decrypt", "Decrypt"]);
  clock += limits.dataKeyKeptMs - 1;
  await openAll();
  expect(kms.calls).toHaveLength(2);
  clock += 1;
  await openAll();
  expect(kms.calls).toHaveLength(4);
});

describe("in the table", () => {
  const caller = (companyId: number): Caller => ({ companyId, userId: 1, role: "owner", permissions: [] });
  const request = (path: string): Request => ({ ...keyedPost("1", "{}"), path, resource: path });

  test("there is no plain secret, neither in the webhook's row nor in the stored answer of an idempotent request", async () => {
    const companyId = await newCompany();
    const ask = (path: string, verb: (context: ApiContext) => Promise<Plan<unknown>>) =>
      commanded(worldWith(db.direct), caller(companyId), request(path), verb, { holdsSecret: true });
    const secretKey = "a secret that must stay secret";
    const create = () =>
      ask("/api/webhooks", (context) => webhooks.createWebhook(context, companyId, { ...input, secretKey }));
    const { value } = await create();
    const [webhook] = await listWebhooks(contextOn(db.direct), companyId);
    const rotated = "another that must stay secret";
    const rotate = () =>
      ask("/rotate", (context) => webhooks.rotateSecret(context, companyId, webhook?.id ?? 0, { secretKey: rotated }));
    const second = await rotate();
    const found = await allOf(companyId);
    for (const secret of [secretKey, rotated]) expect(found).not.toContain(secret);
    // The stored answer contains the secrets only in encrypted form. A repeated request must still get them in plain text.
    expect(await create()).toEqual({ value: JSON.parse(JSON.stringify(value)), replayed: true });
    expect(await rotate()).toEqual({ value: JSON.parse(JSON.stringify(second.value)), replayed: true });
    expect(await secretsIn(companyId, webhook?.id ?? 0)).toMatchObject({
      secretKey: rotated,
      previousSecret: { secretKey },
    });
    // Idempotency keys can be guessed, so a key derived from one (here `1`) must not decrypt a stored answer.
    const guessed = createSecretKey(Buffer.from(hkdfSync("sha256", "1", "1", "POST /api/webhooks", 32)));
    for (const key of await db.keysOf(`C#${companyId}#IK#1`)) {
      const row = await db.direct.get(key);
      expect(row).not.toHaveProperty("answer");
      const { sealedAnswer } = row ?? {};
      if (!(sealedAnswer instanceof Uint8Array)) throw new Error("no answer is kept");
      expect(() => open(guessed, key, sealedAnswer)).toThrow();
    }
  });

  test("a sealed secret copied to another webhook, of the same or another company, cannot sign", async () => {
    const [own, foreign] = [await newCompany(), await newCompany()];
    const [a, b, c] = [
      await createWebhook(worldWith(db.direct), own, input),
      await createWebhook(worldWith(db.direct), own, input),
      await createWebhook(worldWith(db.direct), foreign, input),
    ];
    const { sealedSecret } = (await readWebhook(contextOn(db.direct), own, a.id)).webhook;
    for (const { companyId, id } of [b, c]) {
      await db.direct.write({ update: keys.webhook(companyId, id), change: { set: { sealedSecret } } });
      await expect(secretsIn(companyId, id)).rejects.toThrow();
    }
    // The data key is encrypted for one company. KMS must refuse to decrypt the key if it is in another company's row.
    const row = await db.direct.get(keys.dataKey(own, "webhook-secrets"));
    await db.direct.write({
      update: keys.dataKey(foreign, "webhook-secrets"),
      change: { set: { wrapped: row?.wrapped } },
    });
    await expect(secretsIn(foreign, c.id)).rejects.toMatchObject({ name: "InvalidCiphertextException" });
  });
});

describe("while the key service refuses", () => {
  const refuse = () => kms.serve([ARN], () => "not now");

  test("no webhook is created and nothing is written; afterwards it is created", async () => {
    const companyId = await newCompany();
    const before = await allOf(companyId);
    refuse();
    const secrets = secretsOn(db.direct);
    await expect(createWebhook(worldWith(db.direct, secrets), companyId, input)).rejects.toMatchObject({
      name: "AccessDeniedException",
    });
    expect((await allOf(companyId)) === before).toBe(true);
    kms.serve([ARN]);
    const { id, secretKey } = await createWebhook(worldWith(db.direct, secrets), companyId, input);
    expect(await secretsIn(companyId, id)).toMatchObject({ secretKey });
  });

  test("nothing is sent, no attempt is used up, and the message returns", async () => {
    const at = await newPipeline(db);
    await publish(at);
    refuse();
    const own = { ...at, context: { ...at.context, secrets: secretsOn(db.direct) } };
    await expect(drain({ ...own, queue: at.queue.slice(0, 1) })).rejects.toThrow();
    expect(at.posts).toEqual([]);
    expect(await deliveries(at)).toMatchObject([{ state: "waiting", attempt: 1 }]);
    // The sender that failed has not released its slot, so the slot is free again only after 20 s.
    at.clock += 20_000;
    await drain(at);
    expect(await deliveries(at)).toMatchObject([{ state: "delivered", attempt: 1 }]);
  });
});
