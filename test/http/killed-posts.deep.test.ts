/** A killed POST: a repetition with the same key gets 409 with Retry-After until the first run counts as dead. */
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";

const db = faultyDynamoDb();
let running: LocalService | undefined;
afterAll(async () => {
  await running?.stop();
});

const start = async (demo: boolean): Promise<LocalService> => {
  running = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo, dynamoDbEndpoint: db.endpoint });
  return running;
};

async function post(service: LocalService, path: string, body: object): Promise<Response> {
  const token = await service.tokenOf("admin@acme.test");
  return fetch(`${service.url}${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Idempotency-Key": `key ${path}` },
    body: JSON.stringify(body),
  });
}

const posts: [path: string, body: object][] = [
  ["/api/prospects", { name: "Ada" }],
  ["/api/statuses", { value: "Killed" }],
  ["/api/tags", { value: "killed" }],
  ["/api/territories", { name: "Killed" }],
  ["/api/addresses", { address1: "1 Main", city: "Denver", state: "CO", zip: "80202" }],
  ["/api/users", { email: "killed@acme.test", firstName: "A", lastName: "B", role: "sales" }],
  ["/api/webhooks", { name: "Killed", url: "http://127.0.0.1:9/" }],
  ["/api/prospects/imports", { fileName: "a.csv" }],
  ["/api/prospects/exports", {}],
];

const Text = z.object({ S: z.string() });
const Transaction = z.object({
  TransactItems: z.array(z.object({ Update: z.optional(z.object({ Key: z.object({ pk: Text, sk: Text }) })) })),
});

test("the repetition of each killed POST gets 409 with Retry-After", async () => {
  const first = await start(true);
  // Claims are single writes; the effect comes with the answer in one transaction, which never ends.
  const reached = Promise.withResolvers<void>();
  // A call that is given up is made again: a run is known by the row of its claim.
  const claims = new Set<string>();
  db.plan((operation, _, body) => {
    if (operation !== "TransactWriteItems") return pass;
    for (const { Update } of z.parse(Transaction, body).TransactItems) {
      if (Update?.Key.pk.S.includes("#IK#") === true) claims.add(Update.Key.sk.S);
    }
    if (claims.size === posts.length) reached.resolve();
    return { kind: "hang" };
  });
  const cutOff = Promise.allSettled(posts.map(([path, body]) => post(first, path, body)));
  await reached.promise;
  await first.stop();
  await cutOff;
  db.plan(() => pass);

  const second = await start(false);
  for (const [path, body] of posts) {
    const answer = await post(second, path, body);
    const Told = z.object({ code: z.string() });
    const told = z.parse(Told, await answer.json());
    expect([path, answer.status, told.code]).toEqual([path, 409, "conflict"]);
    expect(Number(answer.headers.get("retry-after")), path).toBeGreaterThanOrEqual(1);
    expect(Number(answer.headers.get("retry-after")), path).toBeLessThanOrEqual(15);
  }
});
