/**
 * Tests the reference client against the running service. Other users write, rights change, the network loses requests and answers, and
 * apps are killed. After each complete sync, a phone's store must have exactly the records that the lists of the API show to its user.
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { PermissionInput } from "../../docs/client/api.ts";
import type { NewOperation } from "../../docs/client/offline.ts";
import { at, baseUrl, flushAuthorizers, tokenOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { sized } from "../harness/tier.ts";
import { listsOf, recordsOf } from "./lists.ts";
import { FAULTS, type Fault, Phone } from "./phone.ts";

const as = await newTeam();
/** The user of each phone. One user has two phones. The test changes the permissions of `importer`. */
const users = [as.rep, as.rep, as.importer, as.viewer, as.admin].slice(0, sized({ short: 3, wide: 5 }));
const statuses = dataOf(await as.owner.GET("/api/statuses")).map(({ id }) => id);
const tags = await Promise.all(
  ["hot", "cold"].map(async (value) => dataOf(await as.owner.POST("/api/tags", { body: { value } }), 201).id),
);
const members = dataOf(await as.owner.GET("/api/users"));
const [repId, importerId, viewerId] = [as.rep, as.importer, as.viewer].map(
  ({ email }) => members.find((member) => member.email === email)?.id,
);

const number = fc.nat(999);
const fault = fc.oneof(fc.constant<Fault>("none"), fc.constantFrom(...FAULTS));
const write = fc.record({
  kind: fc.constantFrom(
    ...(["create", "rename", "assign", "assign", "assign", "delete"] as const),
    ...(["note", "note", "appointment", "appointment"] as const),
    ...(["territory", "status", "tag", "user", "rights"] as const),
  ),
  target: number,
  value: number,
});
type Write = ReturnType<typeof write.generate>["value"];
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("add"),
      phone: fc.nat(users.length - 1),
      type: fc.constantFrom(
        ...(["prospect.create", "prospect.update", "note.create", "note.create", "appointment.create"] as const),
        ...(["prospect.update", "appointment.update", "prospect.tags", "prospect.delete"] as const),
      ),
      target: number,
      value: number,
      isChecked: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: write },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("sync"),
      phone: fc.nat(users.length - 1),
      tabs: fc.constantFrom(1, 1, 1, 2),
      faults: fc.array(fault, { maxLength: 6 }),
      calls: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constant(10_000)),
      /** What other users write online during the sync. The tests call these users the office. */
      meanwhile: fc.array(write, { maxLength: 2 }),
    }),
  },
);
type Step = ReturnType<typeof step.generate>["value"];
type Add = Extract<Step, { type: unknown }>;

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length];
const inOneDay = (): string => new Date(Date.now() + 86_400_000).toISOString();

/** Limit for the statuses that the office creates. A company may have at most 200 statuses, including deleted ones. */
const STATUSES = 150;

const HOUR_MS = 3_600_000;

let words = 0;
/** Returns a new text, by which the test finds the effect of one operation. */
const newWord = (by = "phone"): string => `${by} ${words++}`;

async function operationOf(phone: Phone, { type, target, value, isChecked }: Add): Promise<NewOperation | undefined> {
  if (type === "prospect.create") {
    const fields = { name: newWord(), currentStatusId: pick(statuses, value) ?? null };
    return { type, clientRecordId: crypto.randomUUID(), fields };
  }
  const client = phone.open();
  if ((await client.shown("prospects")).length === 0) await client.sync();
  const isAppointment = type === "appointment.update";
  const shown = pick(await client.shown(isAppointment ? "appointments" : "prospects"), target);
  if (shown === undefined) return undefined;
  const { record, pending } = shown;
  const name =
    record === undefined ? { clientRecordId: pending[0]?.operation.clientRecordId ?? "" } : { id: record.id };
  const base = isChecked && record !== undefined ? { baseVersion: record.version } : {};
  if (isAppointment) return { type, ...name, ...base, fields: { location: newWord() } };
  if (type === "note.create") return { type, ...name, fields: { body: newWord() } };
  if (type === "appointment.create") return { type, ...name, fields: { title: newWord(), startAt: inOneDay() } };
  if (type === "prospect.tags") return { type, ...name, ...base, fields: { tagIds: tags.slice(0, value % 3) } };
  if (type === "prospect.delete") return { type, ...name, ...base };
  const fields = value % 2 === 0 ? { name: newWord() } : { currentStatusId: pick(statuses, value) ?? null };
  return { type, ...name, ...base, fields };
}

/** Makes one write of a user who is online (the office). The office changes only those notes, statuses and so on that it has created. */
async function writeOnline({ kind, target, value }: Write): Promise<void> {
  const { GET, POST, PATCH, DELETE } = as.owner;
  const word = newWord("office");
  const isOwn = (text: string): boolean => text.startsWith("office");
  const assignedToUserId = pick([repId, importerId, viewerId, null], value) ?? null;
  const { items } = dataOf(await GET("/api/prospects", { params: { query: { pageSize: 100 } } }));
  const prospectId = pick(items, target)?.id;
  const turn = value % 3;
  if (kind === "rights") {
    await setRights(pick([[], ["canViewAllProspects"], ["canManageProspects"]] as const, value) ?? []);
  } else if (kind === "user") {
    dataOf(await PATCH("/api/users/{id}", { ...at(viewerId ?? 0), body: { firstName: word } }));
  } else if (kind === "territory") {
    const found = pick(dataOf(await GET("/api/territories")), target);
    if (found === undefined || turn === 0) dataOf(await POST("/api/territories", { body: { name: word } }), 201);
    else if (turn === 1) await PATCH("/api/territories/{id}", { ...at(found.id), body: { name: word } });
    else await DELETE("/api/territories/{id}", at(found.id));
  } else if (kind === "status") {
    const all = dataOf(await GET("/api/statuses"));
    const found = pick(
      all.filter(({ value: text }) => isOwn(text)),
      target,
    );
    const isNew = found === undefined || (turn === 0 && all.length < STATUSES);
    if (isNew) dataOf(await POST("/api/statuses", { body: { value: word } }), 201);
    else if (turn !== 2) await PATCH("/api/statuses/{id}", { ...at(found.id), body: { value: word } });
    else await DELETE("/api/statuses/{id}", at(found.id));
  } else if (kind === "tag") {
    const own = dataOf(await GET("/api/tags")).filter(({ value: text }) => isOwn(text));
    const found = pick(own, target);
    if (found === undefined || turn === 0) dataOf(await POST("/api/tags", { body: { value: word } }), 201);
    else if (turn === 1) await PATCH("/api/tags/{id}", { ...at(pick(tags, target) ?? 0), body: { value: word } });
    else await DELETE("/api/tags/{id}", at(found.id));
  } else if (kind === "create" || prospectId === undefined) {
    dataOf(await POST("/api/prospects", { body: { name: word, assignedToUserId } }), 201);
  } else if (kind === "delete") {
    await DELETE("/api/prospects/{id}", at(prospectId));
  } else if (kind === "note") {
    const { data: notes = [] } = await GET("/api/prospects/{id}/notes", at(prospectId));
    const found = notes.find(({ body }) => isOwn(body));
    if (found === undefined || turn === 0) {
      await POST("/api/prospects/{id}/notes", { ...at(prospectId), body: { body: word } });
    } else if (turn === 1) await PATCH("/api/notes/{id}", { ...at(found.id), body: { body: word } });
    else await DELETE("/api/notes/{id}", at(found.id));
  } else if (kind === "appointment") {
    const found = pick(
      dataOf(await GET("/api/appointments")).filter(({ title }) => isOwn(title)),
      target,
    );
    const body = { title: word, startAt: inOneDay(), assignedToUserId };
    if (found === undefined || turn === 0) await POST("/api/prospects/{id}/appointments", { ...at(prospectId), body });
    else if (turn === 1) await PATCH("/api/appointments/{id}", { ...at(found.id), body: { status: "cancelled" } });
    else await DELETE("/api/appointments/{id}", at(found.id));
  } else {
    const body = kind === "assign" ? { assignedToUserId } : { name: word };
    await PATCH("/api/prospects/{id}", { ...at(prospectId), body });
  }
}

async function setRights(permissions: readonly PermissionInput[]): Promise<void> {
  dataOf(await as.owner.PATCH("/api/users/{id}", { ...at(importerId ?? 0), body: { permissions: [...permissions] } }));
  await flushAuthorizers();
}

async function follow(steps: readonly Step[], pageLimit: number): Promise<void> {
  const phones = users.map(
    ({ email }) => new Phone({ baseUrl: baseUrl(), accessToken: () => tokenOf(email), pageLimit }),
  );
  const phoneAt = (n: number): Phone => phones[n] ?? expect.fail();
  const expectLists = async (n: number): Promise<void> =>
    expect(await recordsOf(phoneAt(n).store)).toEqual(await listsOf(users[n] ?? expect.fail()));
  for (const value of [0, 1, 2]) await writeOnline({ kind: "create", target: 0, value });
  for (const kind of ["note", "appointment", "note", "appointment", "territory", "status", "tag"] as const) {
    await writeOnline({ kind, target: words, value: 0 });
  }
  for (const phone of phones) expect(await phone.open().sync()).toBe("synced");
  const added: { opId: string; operation: NewOperation }[] = [];
  for (const one of steps) {
    if ("calls" in one) {
      const phone = phoneAt(one.phone);
      phone.faults = [...one.faults];
      await Promise.all([phone.syncUntil(one.calls, one.tabs), ...one.meanwhile.map(writeOnline)]);
      phone.faults = [];
      if ((await phone.open().sync()) === "synced") await expectLists(one.phone);
    } else if ("type" in one) {
      const operation = await operationOf(phoneAt(one.phone), one);
      if (operation !== undefined) added.push(await phoneAt(one.phone).open().add(operation));
    } else await writeOnline(one);
  }
  // With the value 2, these writes delete a record, or take it away from a user. Each test therefore has such changes.
  for (const kind of ["note", "appointment", "territory", "status", "tag", "assign", "delete", "rights"] as const) {
    await writeOnline({ kind, target: 0, value: 2 });
  }
  const discarded = new Set<string>();
  for (const phone of phones) for (const opId of await phone.settle()) discarded.add(opId);
  await Promise.all(
    phones.map(async (phone, n) => {
      expect(await phone.store.outbox()).toEqual([]);
      expect(await phone.open().sync()).toBe("synced");
      await expectLists(n);
    }),
  );

  const { prospects, notes, appointments } = await listsOf(as.owner);
  const texts = [...notes.map(({ body }) => body), ...appointments.map(({ title }) => title)];
  for (const { operation } of added.filter(({ opId }) => !discarded.has(opId))) {
    const { clientRecordId, type, fields } = operation;
    const made = prospects.filter((prospect) => prospect.clientRecordId === (clientRecordId ?? ""));
    const target = operation.id === undefined ? made : prospects.filter(({ id }) => id === operation.id);
    expect(made.length).toBeLessThanOrEqual(1);
    if (type !== "note.create" && type !== "appointment.create") continue;
    // The notes and appointments of a deleted prospect are not listed, so none are expected.
    expect(texts.filter((text) => text === (fields?.body ?? fields?.title))).toHaveLength(target.length);
  }
  await Promise.all(prospects.map(({ id }) => as.owner.DELETE("/api/prospects/{id}", at(id))));
  await setRights(["canManageProspects"]);
}

test("each phone holds exactly the lists of its user after each complete sync, and each operation has its effect once", {
  tags: "sized",
  timeout: HOUR_MS,
}, async () => {
  const steps = fc.array(step, { minLength: 10, maxLength: 16 });
  const pageLimit = fc.constantFrom(5, 500);
  await fc.assert(fc.asyncProperty(steps, pageLimit, follow), {
    endOnFailure: true,
    numRuns: sized({ short: 1, wide: 100 }),
  });
});
