/** Runs all webhook benches: units of a delivered event, and delivery times. */
import { metered } from "#shared/db/meter.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { useTestKms } from "../harness/kms.ts";
import { drain, newPipeline, type Pipeline, publish } from "../webhooks/pipeline.ts";
import { type Budget, budgetsOf } from "./budget.ts";
import { type BenchCompany, makeProspect } from "./prospects.ts";
import { type DeliveryTimes, deliveryTimes } from "./webhook-times.ts";

export interface WebhookFigures {
  readonly budgets: readonly Budget[];
  readonly times: readonly DeliveryTimes[];
}

export async function measureWebhooks(): Promise<WebhookFigures> {
  // Only errors are logged, because a log line for each event would hide the results in the terminal.
  process.env.LOG_LEVEL ??= "error";
  process.env.WEBHOOK_URL_POLICY = "local";
  await useTestKms();
  const db = await startFaultyDynamoDb();
  const budgets = await deliveryUnits(db).finally(() => db.stop());
  return { budgets, times: await deliveryTimes() };
}

/** Number of delivered events. The result is the mean of their costs, because their bodies differ in length. */
const DELIVERED = 50;

async function benchCompany({ db, companyId }: Pipeline): Promise<BenchCompany> {
  const { statuses, users } = await loadDictionary(db.direct, companyId);
  const [ownerId = 0] = [...users.keys()];
  const count = 100_000;
  return { id: companyId, ownerId, statuses: [...statuses.values()], repIds: [ownerId], tagIds: [], firstId: 1, count };
}

async function deliveryUnits(db: FaultyDynamoDb): Promise<Budget[]> {
  const scene = await newPipeline(db);
  const company = await benchCompany(scene);
  const sums = { publish: 0, send: 0, reads: 0, requests: 0 };
  for (let i = 0; i < DELIVERED; i++) {
    const { importId: _, ...after } = makeProspect(company, i).prospect;
    const published = await metered(() =>
      publish({ ...scene, change: { before: undefined, after: prospectItem(after) } }),
    );
    const sent = await metered(() => drain(scene));
    sums.publish += published.usage.writeUnits;
    sums.send += sent.usage.writeUnits;
    sums.reads += sent.usage.readUnits;
    sums.requests += published.usage.requests + sent.usage.requests;
  }
  if (scene.posts.length !== DELIVERED) throw new Error(`${scene.posts.length} of ${DELIVERED} events were sent`);
  const bytes = scene.posts.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
  const line = (text: string, limit: number | null, sum: number) => budgetsOf("")(0, text, limit, sum / DELIVERED);
  return [
    line("delivered event, write units", 8, sums.publish + sums.send),
    line("of them for the delivery and its entry in the due index", null, sums.publish),
    line("of them for its limiter slot, attempt and result", null, sums.send),
    line("delivered event, read units of the sender", null, sums.reads),
    line("requests to the table, beside a send, a receive and a delete of the queue", null, sums.requests),
    line("bytes of its body", null, bytes),
  ];
}
