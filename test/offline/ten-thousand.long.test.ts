/**
 * Tests the reference client with 10 000 prospects of a service that `npm start` runs, on a bad network, while the app is killed and others
 * write. In the end, the phone's store must have exactly the records that the lists of the API show.
 */
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiClient } from "../../docs/client/client.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { localToken } from "../../infra/local/local-token.ts";
import { type StartedService, startService } from "../bench/started-service.ts";
import { dataOf } from "../harness/shapes.ts";
import { listsOf, recordsOf } from "./lists.ts";
import { FAULTS, Phone } from "./phone.ts";

let service: StartedService;
beforeAll(async () => {
  service = await startService(["--seed", "10000"]);
}, 600_000);
afterAll(() => service.stop());

/** Sends a request. The test reads hundreds of lists at once, so it waits each time the throttle of the company refuses a request. */
async function patientFetch(request: Request): Promise<Response> {
  const response = await fetch(request.clone());
  if (response.status !== 429) return response;
  await setTimeout(Number(response.headers.get("Retry-After") ?? 1) * 1000);
  return patientFetch(request);
}

test.each(["owner@acme.test", "rep@acme.test"])(
  "%s has all prospects of the list after a day with a bad network",
  async (email) => {
    // The sequence is the same in each run, so that a failure can be repeated.
    const random = randomSequence(20_261_123);
    const pick = <T>(list: readonly T[]): T =>
      list[Math.floor(random() * list.length)] ?? expect.fail("nothing to pick");
    const token = await localToken(service.url, email);
    const ownersToken = await localToken(service.url, "owner@acme.test");
    const user = apiClient({ baseUrl: service.url, accessToken: () => token, fetch: patientFetch });
    const office = apiClient({ baseUrl: service.url, accessToken: () => ownersToken, fetch: patientFetch });
    let isBad = true;
    const phone = new Phone({
      baseUrl: service.url,
      accessToken: () => token,
      pageLimit: 100,
      network: () => (isBad && random() < 0.4 ? pick(FAULTS) : "none"),
    });

    const { id: userId } = dataOf(await user.GET("/api/me")).user;
    const notes = new Map<string, string>();
    for (let round = 0; round < 120; round++) {
      // The killed app reads the snapshot in several rounds, and may show no prospects in the first ones.
      await phone.syncUntil(10 + Math.floor(random() * 40));
      const shown = await phone.open().shown("prospects");
      for (const { record } of shown.length === 0 ? [] : [pick(shown), pick(shown)]) {
        if (record === undefined) continue;
        const body = `note ${round} ${record.id} of ${email}`;
        const { opId } = await phone.open().add({ type: "note.create", id: record.id, fields: { body } });
        await phone.open().add({ type: "prospect.update", id: record.id, fields: { name: `Name ${round}` } });
        notes.set(opId, body);
      }
      await phone.open().add({
        type: "prospect.create",
        clientRecordId: crypto.randomUUID(),
        fields: { name: `New ${round} of ${email}` },
      });
      const { items } = dataOf(
        await office.GET("/api/prospects", {
          params: { query: { page: 1 + Math.floor(random() * 90), pageSize: 100 } },
        }),
      );
      const path = { id: pick(items).id };
      const body = random() < 0.5 ? { assignedToUserId: random() < 0.5 ? userId : null } : { name: `Office ${round}` };
      dataOf(await office.PATCH("/api/prospects/{id}", { params: { path }, body }));
    }
    isBad = false;
    const discarded = await phone.settle();
    expect(await phone.store.outbox()).toEqual([]);

    const noted = new Set([...notes.values()].map((body) => Number(body.split(" ")[2])));
    const isSampled = (id: number): boolean => id % 50 === 0 || noted.has(id);
    const lists = await listsOf(user, (all) => all.filter(({ id }) => isSampled(id)));
    const records = await recordsOf(phone.store);
    const sample = records.notes.filter(({ prospectId }) => isSampled(prospectId));
    expect({ ...records, notes: sample }).toEqual(lists);
    if (email.startsWith("owner")) expect(records.prospects.length).toBeGreaterThanOrEqual(10_000);

    const created = lists.prospects
      .map(({ name }) => name)
      .filter((name) => name?.startsWith("New ") && name.endsWith(email));
    expect(new Set(created).size).toBe(created.length);
    const expected = [...notes].flatMap(([opId, body]) => (discarded.has(opId) ? [] : [body]));
    const found: string[] = [];
    for (const id of new Set(expected.map((note) => Number(note.split(" ")[2])))) {
      const { data = [] } = await office.GET("/api/prospects/{id}/notes", { params: { path: { id } } });
      found.push(...data.map(({ body }) => body).filter((body) => body.startsWith("note ") && body.endsWith(email)));
    }
    expect(found.toSorted()).toEqual(expected.toSorted());
    const counts = Object.entries(records).map(([type, all]) => `${all.length} ${type}`);
    console.log(
      `${email}: ${counts.join(", ")}, ${phone.waits.length} repeated requests, ${expected.length} notes written offline, ${discarded.size} operations discarded`,
    );
  },
);
