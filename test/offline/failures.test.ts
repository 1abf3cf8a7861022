/** Tests that the reference client sends and stores what docs/offline.md shows for each failure. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Entry } from "../../docs/client/store.ts";
import type { Fault, Phone } from "./phone.ts";
import { dataOf, SmallService } from "./small-service.ts";

const guide = readFileSync(new URL("../../docs/offline.md", import.meta.url), "utf8");

/** Returns the arrows of a section's sequence diagram, without arrows from the user, which are no part of the protocol. */
function arrowsOf(section: string): string[] | undefined {
  const [, diagram] = /^```mermaid\nsequenceDiagram\n(.*?)^```$/ms.exec(section) ?? [];
  const lines = diagram?.split("\n").map((line) => line.trim());
  for (const line of lines ?? []) expect(line).toMatch(LINE);
  return lines?.filter((line) => /^(?:app|service)-/.test(line));
}
const LINE =
  /^(?:|(?:actor|participant) \w+ as [\w ]+|(?:app|service|user)-(?:-?>>|-?x)(?:app|service|store): .+|Note over [\w, ]+: .+|loop .+|end)$/;

const sections = new Map(
  guide
    .split(/^#{2,3} /m)
    .slice(1)
    .map((section) => [section.split("\n", 1)[0] ?? "", section]),
);
const [, described = ""] = /^## Failure by failure\n(.*?)^## /ms.exec(guide) ?? [];
const headings = [...described.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading);

const statesOf = async ({ store }: Phone): Promise<string[]> => (await store.outbox()).map(({ state }) => state);

const create = (phone: Phone, name: unknown, clientRecordId: string = crypto.randomUUID()): Promise<Entry> =>
  phone.open().add({ type: "prospect.create", clientRecordId, fields: { name } });

/** Returns a phone that has read the only prospect of the service. */
async function startedPhone(service: SmallService) {
  const id = service.write(undefined, { data: { name: "a" } });
  const phone = service.newPhone();
  expect(await phone.open().sync()).toBe("synced");
  const { version: baseVersion = 0 } = (await phone.store.record("prospects", id)) ?? {};
  phone.trace.length = 0;
  return { phone, id, baseVersion };
}

async function expectSynced(service: SmallService, phone: Phone): Promise<void> {
  expect(await phone.open().sync()).toBe("synced");
  expect(await dataOf(phone)).toEqual(service.list());
  expect(await phone.store.outbox()).toEqual([]);
}

/** Syncs one change of a name. `faults` are the faults of the phone's first requests. The name must change once. */
async function syncWith(service: SmallService, ...faults: Fault[]): Promise<Phone> {
  const { phone, id } = await startedPhone(service);
  const { opId } = await phone.open().add({ type: "prospect.update", id, fields: { name: "b" } });
  phone.faults = faults;
  await expectSynced(service, phone);
  expect(service.effects).toEqual([opId]);
  expect(service.list()).toEqual([{ id, name: "b" }]);
  return phone;
}

/** Each function causes the failure of a heading of docs/offline.md. The phone's trace must equal the diagram below the heading. */
const failures: Record<string, (service: SmallService) => Promise<Phone>> = {
  "A request does not arrive": async (service) => {
    const phone = await syncWith(service, "lost request", "lost request", "lost request");
    for (const [i, ms] of phone.waits.entries()) {
      expect(ms).toBeGreaterThanOrEqual(250 * 2 ** i);
      expect(ms).toBeLessThanOrEqual(500 * 2 ** i);
    }
    expect(phone.waits).toHaveLength(3);
    phone.faults = ["lost request", "lost request", "lost request", "lost request"];
    expect(await phone.open().sync()).toBe("offline");
    return phone;
  },

  "The answer is lost": (service) => syncWith(service, "lost answer", "none", "cut answer"),

  "A page arrives twice": async (service) => {
    await syncWith(service, "none", "twice");
    const { phone, id } = await startedPhone(service);
    const { promise: isHeld, resolve: release } = Promise.withResolvers<void>();
    const tab = service.newPhone({
      store: phone.store,
      fetch: async (request) => {
        const answer = await service.fetch(request);
        await isHeld;
        return answer;
      },
    });
    service.write(id, { data: { name: "c" } });
    const late = tab.open().sync();
    await expectSynced(service, phone);
    service.write(id, { data: { name: "d" } });
    await expectSynced(service, phone);
    const { cursor } = await phone.store.state();
    release();
    expect(await late).toBe("synced");
    expect((await phone.store.state()).cursor).toBe(cursor);
    return phone;
  },

  "410 sync_reset_required": async (service) => {
    for (const reason of ["expired", "scope_changed", "log_restarted"]) {
      const { phone, id } = await startedPhone(service);
      for (let i = 0; i < 4; i++) service.write(undefined, { data: { name: i } });
      service.write(id, { isHidden: true });
      service.reset(reason);
      await phone.open().add({ type: "note.create", id, fields: { body: "kept" } });
      phone.faults = ["lost request", "lost request", "lost request", "lost request"];
      expect(await phone.open().sync()).toBe("offline");
      // The network fails in the middle of the new snapshot. The old record must still be visible, and the operation must still exist.
      phone.faults = ["none", "none", "none", "lost request", "lost request", "lost request", "lost request"];
      expect(await phone.open().sync()).toBe("offline");
      expect((await phone.store.records("prospects")).map((record) => record.id)).toContain(id);
      expect(phone.trace).toContain(`service-->>app: 410 ${reason}`);
      for (const entry of await phone.open().failed()) await phone.open().discard(entry);
      await expectSynced(service, phone);
      expect((await phone.store.records("prospects")).map((record) => record.id)).not.toContain(id);
    }
    const small = new SmallService();
    const { phone } = await startedPhone(small);
    small.reset("scope_changed");
    await expectSynced(small, phone);
    return phone;
  },

  "The records differ from those of the service": async (service) => {
    const { phone, id } = await startedPhone(service);
    const { generation } = await phone.store.state();
    await phone.store.commit({ remove: [{ type: "prospects", id, version: Number.MAX_SAFE_INTEGER, generation }] });
    service.nowMs += 86_400_000;
    await expectSynced(service, phone);
    return phone;
  },

  "401 while sending": async (service) => {
    const { phone, id } = await startedPhone(service);
    const { opId } = await phone.open().add({ type: "prospect.update", id, fields: { name: "b" } });
    phone.faults = ["lost answer", 401];
    expect(await phone.open().sync()).toBe("signed-out");
    expect(await statesOf(phone)).toEqual(["waiting"]);
    await expectSynced(service, phone);
    expect(service.effects).toEqual([opId]);
    return phone;
  },

  "429 and 503": async (service) => {
    const id = service.write(undefined, { data: { name: "a" } });
    const answers = [429, 503];
    const phone = service.newPhone({
      fetch: async (request) => {
        const status = answers.shift();
        const headers = { "Retry-After": "7", Date: new Date(service.nowMs).toUTCString() };
        return status === undefined ? service.fetch(request) : Response.json({}, { status, headers });
      },
    });
    await phone.open().add({ type: "prospect.update", id, fields: { name: "b" } });
    phone.trace.length = 0;
    await expectSynced(service, phone);
    expect(phone.waits).toEqual([7_000, 7_000]);
    expect(service.list()).toEqual([{ id, name: "b" }]);
    return phone;
  },

  "500 and other 5xx": (service) => syncWith(service, 500, "none", 500),

  "400 or 413 for the whole request": async (service) => {
    service.refusedNames.add("bad");
    const phone = service.newPhone();
    await phone.open().sync();
    for (const name of ["a", "b", "bad", "c"]) await create(phone, name);
    phone.trace.length = 0;
    expect(await phone.open().sync()).toBe("synced");
    expect(service.list().map(({ name }) => name)).toEqual(["a", "b", "c"]);
    expect((await phone.open().failed()).map(({ operation }) => operation.fields?.name)).toEqual(["bad"]);
    return phone;
  },

  "An operation never succeeds": async (service) => {
    service.failingNames.add("poison");
    const { phone, id } = await startedPhone(service);
    const other = service.write(undefined, { data: { name: "other" } });
    await phone.open().add({ type: "prospect.update", id, fields: { name: "poison" } });
    await phone.open().add({ type: "prospect.update", id, fields: { name: "later" } });
    await phone.open().add({ type: "prospect.update", id: other, fields: { name: "changed" } });
    phone.trace.length = 0;
    expect(await phone.open().sync()).toBe("offline");
    // Only operations on the failing record wait. Those on other records are applied, and the app reads what others have changed.
    expect(await dataOf(phone)).toEqual([
      { id, name: "a" },
      { id: other, name: "changed" },
    ]);
    expect(await statesOf(phone)).toEqual(["waiting", "waiting"]);
    service.failingNames.clear();
    await expectSynced(service, phone);
    expect(service.list()[0]).toEqual({ id, name: "later" });
    return phone;
  },

  Conflict: async () => {
    const phones = await Promise.all((["mine", "theirs"] as const).map(conflict));
    return phones[0] ?? expect.fail();
  },

  Blocked: async (service) => {
    service.refusedNames.add("bad");
    const phone = service.newPhone();
    const clientRecordId = crypto.randomUUID();
    await create(phone, "bad", clientRecordId);
    await phone.open().add({ type: "note.create", clientRecordId, fields: { body: "first" } });
    await phone.open().add({ type: "note.create", clientRecordId, fields: { body: "second" } });
    expect(await phone.open().sync()).toBe("synced");
    expect(await statesOf(phone)).toEqual(["failed", "waiting", "waiting"]);
    for (const entry of await phone.open().failed()) await phone.open().discard(entry);
    expect(await phone.store.outbox()).toEqual([]);
    return phone;
  },

  "A record is created offline": async (service) => {
    const phone = service.newPhone();
    const clientRecordId = crypto.randomUUID();
    await create(phone, "a", clientRecordId);
    await phone.open().add({ type: "prospect.update", clientRecordId, fields: { name: "b" } });
    expect(await phone.open().shown("prospects")).toMatchObject([{ pending: [{}, {}] }]);
    await expectSynced(service, phone);
    const [made] = await phone.store.records("prospects");
    await phone.open().add({ type: "prospect.update", id: made?.id ?? 0, fields: { name: "c" } });
    await phone.open().add({ type: "prospect.update", clientRecordId, fields: { name: "d" } });
    expect(await phone.open().shown("prospects")).toMatchObject([{ record: { id: made?.id }, pending: [{}, {}] }]);
    await expectSynced(service, phone);
    expect(service.list()).toMatchObject([{ clientRecordId, name: "d" }]);
    return phone;
  },

  "The prospect was reassigned while the phone was away": async (service) => {
    const { phone, id } = await startedPhone(service);
    service.write(id, { isHidden: true });
    await phone.open().add({ type: "prospect.update", id, fields: { name: "b" } });
    expect(await phone.open().sync()).toBe("synced");
    expect(await dataOf(phone)).toEqual([]);
    const failed = await phone.open().failed();
    expect(failed).toMatchObject([{ result: { outcome: "rejected", problem: { code: "not_found" } } }]);
    for (const entry of failed) await phone.open().discard(entry);
    await expectSynced(service, phone);
    return phone;
  },

  "The app is killed": async () => {
    let outcome: unknown = "killed";
    let phone: Phone | undefined;
    for (let calls = 1; outcome === "killed"; calls++) {
      const service = new SmallService();
      for (let i = 0; i < 8; i++) service.write(undefined, { data: { name: i } });
      phone = service.newPhone();
      const clientRecordId = crypto.randomUUID();
      const added = [
        await create(phone, "new", clientRecordId),
        await phone.open().add({ type: "prospect.update", clientRecordId, fields: { name: "newer" } }),
        await phone.open().add({ type: "prospect.delete", id: 3 }),
      ];
      phone.trace.length = 0;
      outcome = await phone.syncUntil(calls);
      await expectSynced(service, phone);
      expect(service.effects).toEqual(added.map(({ opId }) => opId));
    }
    return phone ?? expect.fail();
  },

  "The phone's clock is wrong": async (service) => {
    const ahead = service.newPhone({ clockErrorMs: 3_600_000 });
    await create(ahead, "a");
    await expectSynced(service, ahead);
    const corrected = new Date(service.nowMs).toISOString();
    expect((await create(ahead, "b")).operation.occurredAt).toBe(corrected);
    const behind = service.newPhone({ clockErrorMs: -3_600_000 });
    await behind.open().sync();
    expect((await create(behind, "c")).operation.occurredAt).toBe(corrected);
    return ahead;
  },

  "The phone was away for more than 60 days": async (service) => {
    const { phone, id } = await startedPhone(service);
    const [client, clientRecordId] = [phone.open(), crypto.randomUUID()];
    const rename = await client.add({ type: "prospect.update", id, fields: { name: "b" } });
    const made = await client.add({
      type: "prospect.create",
      clientRecordId,
      fields: { name: "c", currentStatusId: 7 },
    });
    const later = await client.add({ type: "prospect.update", clientRecordId, fields: { name: "d" } });
    service.nowMs += 61 * 86_400_000;
    service.reset("expired");
    phone.trace.length = 0;
    expect(await client.sync()).toBe("synced");
    const [failed = expect.fail(), ...others] = await client.failed();
    expect([failed.opId, others]).toEqual([made.opId, []]);
    await client.retry(failed);
    const [{ opId, operation } = made] = await phone.store.outbox();
    expect(operation.occurredAt).toBe(new Date(service.nowMs).toISOString());
    await expectSynced(service, phone);
    expect(service.effects).toEqual([rename.opId, opId, later.opId]);
    return phone;
  },

  "The browser removes the data, or the disk is full": async (service) => {
    const { phone, id } = await startedPhone(service);
    const { store } = phone;
    const full = async (): Promise<never> => {
      throw new DOMException("the disk is full", "QuotaExceededError");
    };
    const before = await store.state();
    service.write(id, { data: { name: "b" } });
    const blocked = service.newPhone({ store: { ...store, commit: full } });
    await expect(blocked.open().sync()).rejects.toThrow("the disk is full");
    expect(await store.state()).toEqual(before);
    await expectSynced(service, phone);
    // A browser that deletes its data deletes the records, the cursor and the outbox together. The app then begins like a new phone.
    await expectSynced(service, service.newPhone());
    return phone;
  },

  "One user has two phones": async (service) => {
    const { phone: first, id, baseVersion } = await startedPhone(service);
    const second = service.newPhone();
    await second.open().sync();
    const change = (name: string) => ({ type: "prospect.update" as const, id, baseVersion, fields: { name } });
    await first.open().add(change("first"));
    await second.open().add(change("second"));
    expect(await Promise.all([first.open().sync(), second.open().sync()])).toEqual(["synced", "synced"]);
    const failed = [...(await first.open().failed()), ...(await second.open().failed())];
    expect(failed).toMatchObject([{ result: { outcome: "conflict" } }]);
    await first.settle();
    await second.settle();
    for (const phone of [first, second]) await expectSynced(service, phone);
    return first;
  },
};

/** Two users change the same record, and the user of the phone chooses a change. Until then, later operations on the record wait. */
async function conflict(choice: "mine" | "theirs"): Promise<Phone> {
  const service = new SmallService();
  const { phone, id, baseVersion } = await startedPhone(service);
  const other = service.write(undefined, { data: {} });
  service.write(id, { data: { name: "theirs" } });
  await phone.open().add({ type: "prospect.update", id, baseVersion, fields: { name: "mine" } });
  await phone.open().add({ type: "prospect.update", id, baseVersion, fields: { phone: "later" } });
  await phone.open().add({ type: "prospect.update", id: other, fields: { name: "another record" } });
  phone.trace.length = 0;
  expect(await phone.open().sync()).toBe("synced");
  const [entry, ...others] = await phone.open().failed();
  expect(others).toEqual([]);
  expect(entry).toMatchObject({
    operation: { fields: { name: "mine" } },
    result: { outcome: "conflict", record: { name: "theirs" } },
  });
  expect(service.list()).toEqual([
    { id, name: "theirs" },
    { id: other, name: "another record" },
  ]);
  if (entry === undefined) return phone;
  await (choice === "mine" ? phone.open().retry(entry) : phone.open().discard(entry));
  await expectSynced(service, phone);
  expect(service.list()[0]).toEqual({ id, name: choice, phone: "later" });
  return phone;
}

test("the guide describes the failures that are tested here", () => {
  expect(headings).toEqual(Object.keys(failures));
});

test.each(Object.keys(failures))("%s", async (heading) => {
  const { trace } = (await failures[heading]?.(new SmallService())) ?? expect.fail();
  const arrows = arrowsOf(sections.get(heading) ?? "");
  if (arrows !== undefined) expect(trace).toEqual(arrows);
});

test("one sync sends and stores what the first diagram shows", async () => {
  const service = new SmallService();
  const { phone, id } = await startedPhone(service);
  await phone.open().add({ type: "prospect.update", id, fields: { name: "b" } });
  await expectSynced(service, phone);
  expect(arrowsOf(sections.get("One sync") ?? "")).toEqual(phone.trace);
});
