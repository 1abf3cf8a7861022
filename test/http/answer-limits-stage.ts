/** Fills a company with the maximum number of records, which have the maximum size. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import * as limits from "#shared/limits.ts";
import { deliveryItem, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { type Answer, type Client, json } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { bodyOf, Identified, present } from "../harness/shapes.ts";
import { openLocalTable } from "../harness/team.ts";
import * as largest from "./answer-limits-records.ts";
import { STREAMED, SUMMARIES, text, wide } from "./answer-limits-records.ts";

const inLanes = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
  mapConcurrently([...Array(count).keys()], 4, work);

interface Target {
  readonly requests: Requests;
  readonly table: Table;
  readonly companyId: number;
}

type Requests = ReturnType<typeof requestsOf>;

export function requestsOf(client: Client) {
  const ask = (method: string, path: string, body?: object, key?: string): Promise<Answer> =>
    client.send(method, path, {
      headers: { ...(!(body instanceof FormData) && json), ...(key !== undefined && { "Idempotency-Key": key }) },
      ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
    });

  /**
   * Sends the request twice with the same idempotency key. The service reads the second answer from a row of the table, so equal answers
   * show that the answer fits into a row.
   */
  async function post(path: string, body: object = {}): Promise<Answer> {
    const key = randomUUID();
    const first = await ask("POST", path, body, key);
    const again = await ask("POST", path, body, key);
    expect([again.status, again.headers.get("idempotency-replayed")], again.text.slice(0, 300)).toEqual([
      first.status,
      "true",
    ]);
    expect(again.text).toBe(first.text);
    return first;
  }

  async function made(path: string, body: object): Promise<number> {
    const answer = await ask("POST", path, body);
    expect(answer.status, answer.text.slice(0, 300)).toBeLessThan(300);
    return z.parse(Identified, answer.body).id;
  }

  /** Creates a bulk job with the maximum number of ids, which belong to no prospect. The job runs for some seconds. Returns its id. */
  const newJob = (): Promise<number> => {
    const ids = Array.from({ length: limits.bulkIds }, (_, i) => 2 ** 50 + i);
    return made("/api/prospects/bulk", { ids, action: { set: { currentStatusId: null } } });
  };

  return { ask, post, made, newJob };
}

/**
 * Creates the records of the company whose user sends `requests`. Returns the ids that the requests of the test use. Most properties of the
 * result have the name of the collection in the route's path.
 */
export async function newStage(requests: Requests) {
  const { ask, made, newJob } = requests;
  const Me = z.object({ company: Identified });
  const companyId = bodyOf(await ask("GET", "/api/me"), 200, Me).company.id;
  const target = { requests, table: await openLocalTable(), companyId };

  const status = await addStatuses(target);
  const tags = await addTags(target);
  const prospectId = await addProspect(target, tags);
  const attached = await addNotesAndAppointments(target, prospectId);
  const territories = await inLanes(32, () => made("/api/territories", largest.territory));
  await inLanes(20, () => made("/api/prospects", largest.prospect));
  const users = await inLanes(20, (i) =>
    made("/api/users", {
      email: `${randomUUID()}${i}@x.test`,
      firstName: largest.name,
      lastName: largest.name,
      role: "sales",
    }),
  );
  const accounts = await inLanes(limits.serviceAccounts - 1, () => made("/api/service-accounts", largest.account));
  for (let i = 1; i < limits.keysPerAccount; i++) {
    const path = `/api/service-accounts/${present(accounts[0])}/keys`;
    bodyOf(await ask("POST", path, largest.key), 201, z.object({ id: z.string() }));
  }
  const importId = await addImports(target);
  const { button, ...webhooks } = await addWebhooks(target);
  const webhookId = webhooks.webhookOfDelivery;
  return {
    prospects: prospectId,
    ...attached,
    addresses: z.parse(z.array(Identified), (await ask("GET", "/api/addresses?limit=1")).body)[0]?.id ?? 0,
    territories: present(territories[0]),
    ...webhooks,
    delivery: await addDeliveries(target, { prospectId, webhookId, button }),
    imports: importId,
    openImport: await made("/api/prospects/imports", { dryRun: true }),
    exports: await made("/api/prospects/exports", { search: text(limits.search) }),
    jobs: await newJob(),
    users: present(users[0]),
    "service-accounts": present(accounts[0]),
    statuses: status,
    tags: present(tags[0]),
    spareTag: present(tags.at(-1)),
  };
}

async function addStatuses({ requests: { ask, made } }: Target): Promise<number> {
  const count = z.parse(z.array(Identified), (await ask("GET", "/api/statuses")).body).length;
  const statuses = await inLanes(limits.statusesPerCompany - count - 1, (i) =>
    made("/api/statuses", { value: wide(limits.displayValue, `s${i}`) }),
  );
  return present(statuses[0]);
}

async function addTags({ requests: { ask } }: Target): Promise<readonly number[]> {
  // An import creates 50 tags with each row, so it is faster than a request for each tag.
  const values = Array.from({ length: limits.tagsPerCompany - 1 }, (_, i) => wide(limits.displayValue, `t${i}`));
  const tagRows: string[] = [];
  for (let at = 0; at < values.length; at += limits.tagsPerProspect) {
    tagRows.push(`1,2,"${values.slice(at, at + limits.tagsPerProspect).join(";")}"`);
  }
  const tagsFile = csvForm(`lat,lng,tags\n${tagRows.join("\n")}\n1,2,last\n`);
  bodyOf(await ask("POST", "/api/prospects/import", tagsFile), 200, Identified);
  return z.parse(z.array(Identified), (await ask("GET", "/api/tags")).body).map(({ id }) => id);
}

async function addProspect({ requests: { ask, made } }: Target, tags: readonly number[]): Promise<number> {
  const prospectId = await made("/api/prospects", { ...largest.prospect, address: largest.address });
  await ask("PUT", `/api/prospects/${prospectId}/tags`, { tagIds: tags.slice(0, limits.tagsPerProspect) });
  const lines = Object.values(largest.address).map((line) => `"${line}"`);
  const addressRows = Array.from({ length: limits.pageSizeMax }, () => lines.join());
  const addressFile = csvForm(`${Object.keys(largest.address).join()}\n${addressRows.join("\n")}\n`);
  bodyOf(await ask("POST", "/api/prospects/import", addressFile), 200, Identified);
  return prospectId;
}

async function addNotesAndAppointments({ requests: { made } }: Target, prospectId: number) {
  const path = `/api/prospects/${prospectId}`;
  const [notes] = await inLanes(STREAMED, () => made(`${path}/notes`, { body: text(limits.note) }));
  const [appointments] = await inLanes(STREAMED, () => made(`${path}/appointments`, largest.appointment));
  return { notes: present(notes), appointments: present(appointments) };
}

async function addImports({ requests: { ask }, table, companyId }: Target): Promise<number> {
  const imported = await ask("POST", "/api/prospects/import", csvForm(largest.badFile));
  const importId = bodyOf(imported, 200, Identified).id;
  const stored = StoredImport.parse(await table.get(keys.import(companyId, importId)));
  const rows: (Key & Item)[] = [];
  for (let i = 1; i <= SUMMARIES; i++) {
    // The service does not assign ids as large as this, so they cannot belong to records of other tests.
    const id = 2 ** 45 + companyId * 1_000 + i;
    rows.push({ ...keys.import(companyId, id), ...stored, id, state: "failed", failure: text(2 * limits.csvHeader) });
    rows.push({ ...keys.importEntry(companyId, id), type: "importEntry", id });
  }
  await table.batchPut(rows);
  return importId;
}

async function addWebhooks({ requests: { ask } }: Target) {
  const WithRegistrations = z.object({ id: z.number(), registrations: z.array(Identified) });
  const webhooks = await inLanes(limits.webhooksPerCompany - 1, async () => {
    const body = largest.webhook(limits.registrationsPerWebhook);
    return bodyOf(await ask("POST", "/api/webhooks", body), 201, WithRegistrations);
  });
  const [first, second] = [present(webhooks[0]), present(webhooks[1])];
  // One registration of `second` is deleted, because the test later creates one, and `second` has the maximum number.
  const spare = present(second.registrations[0]).id;
  bodyOf(await ask("DELETE", `/api/webhooks/${second.id}/registrations/${spare}`), 200, Identified);
  return {
    webhooks: second.id,
    registration: present(second.registrations[1]).id,
    webhookOfDelivery: first.id,
    button: present(first.registrations[0]).id,
  };
}

/** Creates `SUMMARIES` deliveries. Returns the id of the one that has the most attempts and the largest body. */
async function addDeliveries(
  { requests: { ask }, table, companyId }: Target,
  { prospectId, webhookId, button }: { prospectId: number; webhookId: number; button: number },
): Promise<string> {
  const Queued = z.object({ deliveryId: z.string() });
  const triggered = await ask("POST", `/api/prospects/${prospectId}/actions/${button}`);
  const { deliveryId } = bodyOf(triggered, 202, Queued);
  const delivery = StoredDelivery.parse(await table.get(keys.delivery(companyId, webhookId, deliveryId)));
  const over = { ...delivery, state: "delivered" as const, attempt: 10, dueShard: undefined, sharedData: undefined };
  const ids = Array.from({ length: SUMMARIES }, (_, i) => `${deliveryId.slice(0, -4)}${String(i).padStart(4, "0")}`);
  await table.batchPut(ids.map((id) => deliveryItem({ ...over, id })));
  const [whole = ""] = ids;
  const ofQuotes = JSON.stringify({ data: '"'.repeat(limits.windowBodyBytes / 2 - 10) });
  await table.batchPut([
    deliveryItem({ ...over, id: whole, body: ofQuotes }),
    ...Array.from({ length: 100 }, (_, i) => ({
      ...keys.attempt(companyId, webhookId, whole, i + 1),
      type: "attempt",
      number: i + 1,
      startedAt: delivery.createdAt,
      latencyMs: 1,
      status: 500,
      error: null,
      answer: text(limits.answerKeptBytes),
      expiresAt: delivery.expiresAt,
    })),
  ]);
  return whole;
}
