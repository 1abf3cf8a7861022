/**
 * Tests the retry of a POST whose function was killed. The service answers a retry with the same idempotency key with 409 and Retry-After,
 * until it may assume that the first request was killed.
 */
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { csvForm } from "../harness/csv-form.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { Identified } from "../harness/shapes.ts";

const db = faultyDynamoDb();
const running: LocalService[] = [];
afterAll(() => Promise.all(running.map((service) => service.stop())));

const start = async (demo: boolean): Promise<LocalService> => {
  const options = { port: 0, webhookUrlPolicy: "local", timeScale: 1, demo, dynamoDbEndpoint: db.endpoint } as const;
  const service = await startLocal(options);
  running.push(service);
  return service;
};

async function post(service: LocalService, path: string, body: object, key = `key ${path}`): Promise<Response> {
  const token = await service.tokenOf("admin@acme.test");
  return fetch(`${service.url}${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify(body),
  });
}

const posts: [path: string, body: object][] = [
  ["/api/prospects", { name: "Ada" }],
  ["/api/statuses", { value: "Killed" }],
  ["/api/tags", { value: "killed" }],
  ["/api/territories", { name: "Killed" }],
  ["/api/territories/import", { type: "FeatureCollection", features: [] }],
  ["/api/addresses", { address1: "1 Main", city: "Denver", state: "CO", zip: "80202" }],
  ["/api/users", { email: "killed@acme.test", firstName: "A", lastName: "B", role: "sales" }],
  ["/api/webhooks", { name: "Killed", url: "http://127.0.0.1:9/" }],
  ["/api/prospects/imports", { fileName: "a.csv" }],
  ["/api/prospects/exports", {}],
  ["/api/prospects/bulk", { ids: [1], action: { set: { currentStatusId: null } } }],
];

/**
 * Sends a request to each path of the test, so that the functions are already running in the test. The bodies are invalid and the import
 * does not exist, so these requests change nothing.
 */
async function warmUp(service: LocalService): Promise<void> {
  const paths = [...posts.map(([path]) => path), "/api/prospects/imports/1/undo"];
  const answers = await Promise.all(paths.map((path) => post(service, path, [], `warm ${path}`)));
  for (const { status } of answers) expect(status).toBeGreaterThanOrEqual(400);
}

/** Imports a prospect and returns the id of the import. */
async function imported(service: LocalService): Promise<number> {
  const headers = { Authorization: `Bearer ${await service.tokenOf("admin@acme.test")}` };
  const body = csvForm("name\nAda\n");
  const answer = await fetch(`${service.url}/api/prospects/import`, { method: "POST", headers, body });
  return z.parse(Identified, await answer.json()).id;
}

const Text = z.object({ S: z.string() });
const Removal = z.object({ Key: z.object({ pk: Text, sk: Text }) });
const Transaction = z.object({
  TransactItems: z.array(z.object({ Update: z.optional(z.object({ Key: z.object({ pk: Text, sk: Text }) })) })),
});

test("the retry of each killed POST gets 409 with Retry-After", async () => {
  const first = await start(true);
  const undo: [string, object] = [`/api/prospects/imports/${await imported(first)}/undo`, {}];
  const sent = [...posts, undo];
  // The second service starts before the requests are sent. Its start can take 30 seconds on a busy machine. If it started after the
  // requests, their claims could expire in the meantime.
  const second = await start(false);
  // The functions also start before the requests, because their start can take long, and the claims could expire in the meantime.
  for (const service of [first, second]) await warmUp(service);
  // A request with an idempotency key first writes a claim on the key. Then one transaction writes the effect and the answer of the
  // request. The fault below makes this transaction hang.
  const reached = Promise.withResolvers<void>();
  let isReached = false;
  // The claims whose transactions have begun. The test counts claims and not transactions, because the service repeats a transaction after
  // a time-out, so that one claim can have several.
  const claims = new Set<string>();
  db.plan((operation, _, body) => {
    // When all transactions have begun, the test stops the first service, which takes some seconds. During this time, all calls to DynamoDB
    // hang. Otherwise a failing request could remove its claim, which a killed request cannot do.
    if (isReached) return { kind: "hang" };
    // If the service gives up a request, it removes the request's claim. The test then sends the request again, and the service writes a
    // new claim for it.
    const removed = operation === "DeleteItem" ? z.parse(Removal, body).Key : undefined;
    if (removed?.pk.S.includes("#IK#") === true) claims.delete(removed.sk.S);
    if (operation !== "TransactWriteItems") return pass;
    for (const { Update } of z.parse(Transaction, body).TransactItems) {
      if (Update?.Key.pk.S.includes("#IK#") === true) claims.add(Update.Key.sk.S);
    }
    if (claims.size === sent.length) {
      isReached = true;
      reached.resolve();
    }
    return { kind: "hang" };
  });
  // On a busy machine, a function may not start within its time limit. The service then refuses the request before the transaction. Each
  // request is therefore repeated until the transactions of all requests have begun.
  const repeated = async ([path, body]: [string, object]): Promise<void> => {
    while (!isReached) {
      await post(first, path, body);
      if (!isReached) await wait(200);
    }
  };
  const cutOff = Promise.allSettled(sent.map(repeated));
  await reached.promise;
  await first.stop();
  await cutOff;
  db.plan(() => pass);

  const answers = await Promise.all(
    sent.map(async ([path, body]) => {
      const answer = await post(second, path, body);
      const problem = z.parse(z.looseObject({ code: z.optional(z.string()) }), await answer.json());
      return { path, status: answer.status, code: problem.code, retryAfter: Number(answer.headers.get("retry-after")) };
    }),
  );
  for (const { path, status, code, retryAfter } of answers) {
    expect([path, status, code]).toEqual([path, 409, "request_in_progress"]);
    expect(retryAfter, path).toBeGreaterThanOrEqual(1);
    expect(retryAfter, path).toBeLessThanOrEqual(15);
  }
});
