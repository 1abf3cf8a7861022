/** Tests POST /api/sync/operations over HTTP: each outcome, the order of operations, facts that arrive late, and repetitions. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { rowVersionOf, shownVersion } from "#shared/prospects/record-version.ts";
import { at, type Client } from "../../harness/client.ts";
import { dataOf, present, problemOf, uniqueName } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { create, operation, outcomes, results } from "./push.ts";

const as = await newTeam();

const prospectOf = async (client: Client, id: number | null) =>
  dataOf(await client.GET("/api/prospects/{id}", at(id ?? 0)));
const newProspect = async (client: Client, fields: object = {}): Promise<{ id: number; version: number }> => {
  const [made] = await results(client, [create(fields)]);
  return { id: present(made?.id), version: present(made?.version) };
};
const only = async (client: Client, sent: object) => present((await results(client, [sent]))[0]);
const userId = async (client: Client): Promise<number> => dataOf(await client.GET("/api/me")).user.id;
const [ravi, rita] = [await userId(as.rep), await userId(as.rep2)];
const statusIds = dataOf(await as.admin.GET("/api/statuses")).map(({ id }) => id);
const [statusA, statusB] = [present(statusIds[0]), present(statusIds[1])];
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
const DAY = 24 * 3_600_000;
const visit = { title: "A", startAt: "2040-01-01T10:00:00Z" };

describe("a batch", () => {
  test("creates a prospect and writes on it by the id of the client, in order", async () => {
    const clientRecordId = randomUUID();
    const name = uniqueName();
    const done = await results(as.rep, [
      create({ name }, clientRecordId),
      operation("prospect.update", { clientRecordId, fields: { name: `${name} 2` } }),
      operation("note.create", { clientRecordId, fields: { body: "first" } }),
      operation("appointment.create", { clientRecordId, fields: visit }),
    ]);
    expect(done.map(({ outcome }) => outcome)).toEqual(["applied", "applied", "applied", "applied"]);
    const shown = await prospectOf(as.rep, done[0]?.id ?? null);
    expect(shown).toMatchObject({ name: `${name} 2`, clientRecordId });
    expect(shown.notes).toMatchObject([{ id: done[2]?.id, body: "first" }]);
    expect(shown.appointments).toMatchObject([{ id: done[3]?.id, title: "A" }]);
    expect(done.map(({ id, version }) => [id, rowVersionOf(version ?? 0)])).toEqual([
      [shown.id, 1],
      [shown.id, 2],
      [done[2]?.id, 1],
      [done[3]?.id, 1],
    ]);
  });

  test("changes the same records as the single requests: the address of a prospect, and the day of an appointment", async () => {
    const address = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };
    const { id } = await newProspect(as.rep, { address });
    const first = present((await prospectOf(as.rep, id)).address).id;
    const [, , made] = await results(as.rep, [
      operation("prospect.update", { id, fields: { address: { ...address, address1: "2 Main St" } } }),
      operation("prospect.update", { id, fields: { addressId: first } }),
      operation("appointment.create", { id, fields: visit }),
    ]);
    const startAt = "2040-02-01T10:00:00.000Z";
    const move = operation("appointment.update", { id: made?.id, fields: { startAt } });
    expect(await only(as.rep, move)).toMatchObject({ outcome: "applied", id: made?.id });
    expect(await prospectOf(as.rep, id)).toMatchObject({ address: { id: first }, appointments: [{ startAt }] });
    const query = { from: "2040-01-01", to: "2040-03-01" };
    const calendar = dataOf(await as.rep.GET("/api/appointments", { params: { query } }));
    expect(calendar.filter((entry) => entry.prospectId === id)).toMatchObject([{ id: made?.id, startAt }]);
    expect(await outcomes(as.rep, [operation("prospect.delete", { id, fields: {} })])).toEqual(["applied"]);
    problemOf(await as.rep.GET("/api/appointments/{id}", at(made?.id ?? 0)), 404, "not_found");
  });

  test("that is sent again has no effect, and gets the first results as duplicates", async () => {
    const clientRecordId = randomUUID();
    const batch = [
      create({ name: "a" }, clientRecordId),
      operation("prospect.update", { clientRecordId, fields: { name: "b" } }),
      operation("note.create", { clientRecordId, fields: { body: "once" } }),
    ];
    const first = await results(as.rep, batch);
    const { id } = await prospectOf(as.rep, first[0]?.id ?? null);
    dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(id), body: { name: "c" } }));
    expect(await results(as.rep, batch)).toEqual(first.map((result) => ({ ...result, outcome: "duplicate" })));
    const shown = await prospectOf(as.rep, id);
    expect([shown.name, shown.notes.length]).toEqual(["c", 1]);
  });
});

describe("an operation is", () => {
  test("a conflict if the record has another version than the device knows; nothing is written", async () => {
    const { id, version } = await newProspect(as.rep, { name: "a" });
    const versionAfter = (changes: number) => shownVersion(rowVersionOf(version) + changes);
    dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(id), body: { name: "b" } }));
    for (const [type, fields] of [
      ["prospect.update", { name: "c" }],
      ["prospect.tags", { tagIds: [] }],
      ["prospect.delete", {}],
    ] as const) {
      const result = await only(as.rep, operation(type, { id, fields, baseVersion: version }));
      expect(result).toMatchObject({ outcome: "conflict", id, version: versionAfter(1), record: { id, name: "b" } });
      expect(Object.keys(present(result.record))).not.toContain("statusId");
    }
    expect((await prospectOf(as.rep, id)).name).toBe("b");
    const now = operation("prospect.update", { id, fields: { name: "c" }, baseVersion: versionAfter(1) });
    expect(await only(as.rep, now)).toMatchObject({ outcome: "applied", version: versionAfter(2) });
  });

  test("a conflict with the current appointment too", async () => {
    const { id } = await newProspect(as.rep);
    const made = await only(as.rep, operation("appointment.create", { id, fields: visit }));
    const change = { id: made.id, fields: { title: "B" }, baseVersion: made.version };
    const first = await only(as.rep, operation("appointment.update", change));
    expect(first).toMatchObject({ outcome: "applied", version: shownVersion(2) });
    const late = await only(as.rep, operation("appointment.update", { ...change, fields: { title: "C" } }));
    expect(late).toMatchObject({ outcome: "conflict", version: shownVersion(2), record: { id: made.id, title: "B" } });
  });

  test("rejected with the problem of the single endpoint, and the others of the batch are applied", async () => {
    const { id } = await newProspect(as.rep);
    const other = await newProspect(as.rep);
    const hidden = await newProspect(as.rep2);
    const foreign = await newProspect(as.otherOwner);
    const done = await results(as.rep, [
      create({ name: "good" }),
      create({ emailAddress: "not an address" }),
      operation("prospect.update", { id: hidden.id, fields: { name: "x" } }),
      operation("prospect.update", { id: foreign.id, fields: { name: "x" } }),
      operation("prospect.update", { clientRecordId: randomUUID(), fields: { name: "x" } }),
      operation("prospect.update", { fields: { name: "x" } }),
      operation("prospect.burn", { id, fields: {} }),
      operation("note.create", { id: other.id, fields: { body: "" } }),
    ]);
    expect(done.map(({ outcome }) => outcome)).toEqual(["applied", ...Array.from({ length: 7 }, () => "rejected")]);
    expect(done.map(({ problem }) => [problem?.code, problem?.errors[0]?.pointer])).toEqual([
      [undefined, undefined],
      ["validation_failed", "/operations/1/fields/emailAddress"],
      ["not_found", undefined],
      ["not_found", undefined],
      ["not_found", undefined],
      ["validation_failed", "/operations/5/id"],
      ["validation_failed", "/operations/6/type"],
      ["validation_failed", "/operations/7/fields/body"],
    ]);
    const reference = await only(as.rep, operation("prospect.update", { id, fields: { currentStatusId: foreign.id } }));
    expect(reference.problem?.errors).toMatchObject([{ pointer: "/operations/0/fields/currentStatusId" }]);
  });

  test("a duplicate even if it could not be applied any more", async () => {
    const { id, version } = await newProspect(as.rep);
    const batch = [operation("prospect.update", { id, fields: { name: "a" }, baseVersion: version })];
    const gone = operation("prospect.delete", { id, fields: {} });
    expect(await outcomes(as.rep, [...batch, gone])).toEqual(["applied", "applied"]);
    expect(await outcomes(as.rep, [...batch, gone])).toEqual(["duplicate", "duplicate"]);
  });

  test("rejected if its opId belongs to another operation of the user; another user may have the same opId", async () => {
    const first = create({ name: "a" });
    expect(await outcomes(as.rep, [first])).toEqual(["applied"]);
    const mismatch = { outcome: "rejected", problem: { code: "idempotency_mismatch" } };
    for (const other of [{ fields: { name: "b" } }, { clientRecordId: randomUUID() }])
      expect(await only(as.rep, { ...first, ...other })).toMatchObject(mismatch);
    expect(await outcomes(as.rep2, [first])).toEqual(["applied"]);
    expect(await outcomes(as.rep, [{ ...first, opId: first.opId.toUpperCase() }])).toEqual(["duplicate"]);
  });

  test("applied without effect if it changes nothing, and a duplicate afterwards", async () => {
    const { id, version } = await newProspect(as.rep, { name: "a" });
    const same = operation("prospect.update", { id, fields: { name: "a" } });
    expect(await only(as.rep, same)).toMatchObject({ outcome: "applied", id, version });
    dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(id), body: { name: "b" } }));
    expect(await only(as.rep, same)).toMatchObject({ outcome: "duplicate", id, version });
    expect((await prospectOf(as.rep, id)).name).toBe("b");
  });
});

test("a clientRecordId of POST /api/prospects is shown, and each user may use it once, even after the prospect is deleted", async () => {
  const clientRecordId = randomUUID();
  const made = dataOf(await as.rep.POST("/api/prospects", { body: { name: "a", clientRecordId } }), 201);
  expect(made.clientRecordId).toBe(clientRecordId);
  const again = await as.rep.POST("/api/prospects", { body: { clientRecordId: clientRecordId.toUpperCase() } });
  expect(problemOf(again, 409, "conflict")).toMatchObject([{ pointer: "/clientRecordId" }]);
  expect(dataOf(await as.rep2.POST("/api/prospects", { body: { clientRecordId } }), 201).id).not.toBe(made.id);
  const update = operation("prospect.update", { clientRecordId, fields: { name: "b" } });
  expect(await only(as.rep, update)).toMatchObject({ outcome: "applied", id: made.id });
  expect((await prospectOf(as.rep, made.id)).name).toBe("b");
  dataOf(await as.rep.DELETE("/api/prospects/{id}", at(made.id)));
  problemOf(await as.rep.POST("/api/prospects", { body: { clientRecordId } }), 409, "conflict");
  const create2 = await only(as.rep, create({}, clientRecordId));
  expect(create2).toMatchObject({ outcome: "rejected", id: made.id, problem: { code: "conflict" } });
  const bare = dataOf(await as.rep.POST("/api/prospects", { body: {} }), 201);
  expect(bare).not.toHaveProperty("clientRecordId");
  problemOf(await as.rep("POST", "/api/prospects", { clientRecordId: "7" }), 400, "validation_failed");
});

describe("a fact", () => {
  test("keeps the time at which it occurred beside the time of its arrival", async () => {
    const { id } = await newProspect(as.rep);
    const occurredAt = ago(3 * DAY);
    const done = await outcomes(as.rep, [
      operation("prospect.update", { id, fields: { currentStatusId: statusA }, occurredAt }),
      operation("note.create", { id, fields: { body: "n" }, occurredAt }),
      operation("appointment.create", { id, fields: visit, occurredAt }),
    ]);
    expect(done).toEqual(["applied", "applied", "applied"]);
    const shown = await prospectOf(as.rep, id);
    for (const fact of [shown.notes[0], shown.appointments[0], shown.statusHistory[0]]) {
      expect(fact?.occurredAt).toBe(occurredAt);
      expect(Date.parse(fact?.createdAt ?? "")).toBeGreaterThan(Date.now() - DAY);
    }
    // A PATCH of the prospect moves the status change into a separate row, which must keep `occurredAt`. A PATCH of the note also keeps its
    // `occurredAt`. A PATCH of the appointment removes its `occurredAt`.
    const online = { ...at(id), body: { currentStatusId: statusB } };
    dataOf(await as.rep.PATCH("/api/prospects/{id}", online));
    const appointment = at(present(shown.appointments[0]?.id));
    const changed = dataOf(await as.rep.PATCH("/api/appointments/{id}", { ...appointment, body: { title: "B" } }));
    expect(changed).not.toHaveProperty("occurredAt");
    const note = at(present(shown.notes[0]?.id));
    expect(dataOf(await as.rep.PATCH("/api/notes/{id}", { ...note, body: { body: "m" } })).occurredAt).toBe(occurredAt);
    const { statusHistory } = await prospectOf(as.rep, id);
    expect(statusHistory.map((change) => change.occurredAt)).toEqual([undefined, occurredAt]);
  });

  test("with a time up to five minutes ahead has the time of its arrival, and its receipt compares the time that was sent", async () => {
    const { id } = await newProspect(as.rep);
    const ahead = (ms: number) => ({ id, occurredAt: ago(-ms) });
    const sent = [
      operation("prospect.update", { ...ahead(1_000), fields: { currentStatusId: statusA } }),
      operation("note.create", { ...ahead(299_000), fields: { body: "n" } }),
      operation("appointment.create", { ...ahead(60_000), fields: visit }),
    ];
    expect(await outcomes(as.rep, sent)).toEqual(["applied", "applied", "applied"]);
    const shown = await prospectOf(as.rep, id);
    for (const fact of [shown.notes[0], shown.appointments[0], shown.statusHistory[0]]) {
      expect(fact?.occurredAt).toBe(fact?.createdAt);
    }
    expect(await outcomes(as.rep, sent)).toEqual(["duplicate", "duplicate", "duplicate"]);
    const other = { ...sent[0], occurredAt: shown.statusHistory[0]?.occurredAt };
    expect(await only(as.rep, other)).toMatchObject({ outcome: "rejected", problem: { code: "idempotency_mismatch" } });
    expect((await prospectOf(as.rep, id)).statusHistory).toHaveLength(1);
  });

  test.each([
    ["more than five minutes ahead", () => ago(-330_000)],
    ["not a time", () => "yesterday"],
  ])("is rejected if it is %s", async (_, occurredAt) => {
    const { id } = await newProspect(as.rep);
    const late = operation("note.create", { id, fields: { body: "n" }, occurredAt: occurredAt() });
    const result = await only(as.rep, late);
    expect(result).toMatchObject({ outcome: "rejected", problem: { code: "validation_failed" } });
    expect(result.problem?.errors).toMatchObject([{ pointer: "/operations/0/occurredAt" }]);
  });

  test("older than 60 days is rejected, but a change without a fact is applied, whatever its age", async () => {
    const { id } = await newProspect(as.rep);
    const occurredAt = ago(61 * DAY);
    const sent = (type: string, fields: object) => ({ ...operation(type, { id, fields }), occurredAt });
    const made = { ...create({ name: "a" }), occurredAt };
    const { clientRecordId } = made;
    const later = operation("note.create", { clientRecordId, fields: { body: "n" }, occurredAt: ago(59 * DAY) });
    const rename = sent("prospect.update", { name: "b" });
    expect(await outcomes(as.rep, [rename, made, later])).toEqual(["applied", "applied", "applied"]);
    for (const fact of [sent("prospect.update", { currentStatusId: statusA }), create({ currentStatusId: statusA })]) {
      const { outcome, problem } = await only(as.rep, { ...fact, occurredAt });
      expect([outcome, problem?.errors[0]?.pointer]).toEqual(["rejected", "/operations/0/occurredAt"]);
    }
  });

  test("of a past assignment is accepted as history, note and appointment, and changes no present status", async () => {
    const { id } = await newProspect(as.admin, { assignedToUserId: ravi, currentStatusId: statusA });
    const during = new Date().toISOString();
    dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(id), body: { assignedToUserId: rita } }));
    dataOf(await as.rep2.PATCH("/api/prospects/{id}", { ...at(id), body: { currentStatusId: null } }));
    const fact = (type: string, fields: object, occurredAt: string | undefined) =>
      operation(type, { id, fields, occurredAt });
    const facts: [type: string, fields: object][] = [
      ["prospect.update", { currentStatusId: statusB }],
      ["note.create", { body: "late" }],
      ["appointment.create", { ...visit, title: "late" }],
    ];
    for (const [type, fields] of facts) {
      for (const occurredAt of [undefined, ago(DAY), new Date().toISOString()]) {
        const refused = await only(as.rep, fact(type, fields, occurredAt));
        expect(refused, `${type} ${occurredAt}`).toMatchObject({ outcome: "rejected", problem: { code: "not_found" } });
      }
      const [applied, again] = [fact(type, fields, during), fact(type, fields, during)];
      expect(await outcomes(as.rep, [applied, again]), type).toEqual(["applied", "applied"]);
      expect(await outcomes(as.rep, [applied, again]), type).toEqual(["duplicate", "duplicate"]);
      expect(await only(as.importer, fact(type, fields, during)), type).toMatchObject({ outcome: "rejected" });
    }
    const others = fact("prospect.update", { currentStatusId: statusB, name: "x" }, during);
    expect(await only(as.rep, others)).toMatchObject({ outcome: "rejected", problem: { code: "not_found" } });
    problemOf(await as.rep.GET("/api/prospects/{id}", at(id)), 404, "not_found");
    const shown = await prospectOf(as.rep2, id);
    expect([shown.currentStatus, shown.assignedTo?.id, shown.name]).toEqual([null, rita, null]);
    expect(shown.notes).toMatchObject(Array.from({ length: 2 }, () => ({ body: "late", createdBy: { id: ravi } })));
    expect(shown.appointments).toMatchObject(Array.from({ length: 2 }, () => ({ title: "late", occurredAt: during })));
    const history = shown.statusHistory.map((change) => [
      change.status?.id ?? null,
      change.changedBy?.id,
      change.occurredAt,
    ]);
    expect(history.slice(0, 3)).toEqual([
      [statusB, ravi, during],
      [statusB, ravi, during],
      [null, rita, undefined],
    ]);
    // The late status change has not changed the current status (null), so the next change has null as its previous status.
    dataOf(await as.rep2.PATCH("/api/prospects/{id}", { ...at(id), body: { currentStatusId: statusA } }));
    const { statusHistory } = await prospectOf(as.rep2, id);
    expect([statusHistory.length, statusHistory[0]?.previousStatus]).toEqual([5, null]);
  });
});

test("a user who has lost a prospect can neither read nor change its appointments, whatever time the operation claims", async () => {
  const { id } = await newProspect(as.admin, { assignedToUserId: ravi });
  const made = (client: Client, title: string) =>
    only(client, operation("appointment.create", { id, fields: { ...visit, title } }));
  const { id: early } = await made(as.rep, "of Ravi");
  const during = new Date().toISOString();
  dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(id), body: { assignedToUserId: rita } }));
  const { id: late } = await made(as.rep2, "of Rita");
  for (const appointment of [early, late]) {
    for (const baseVersion of [undefined, 999, shownVersion(1)]) {
      const change = { id: appointment, fields: { title: "changed" }, baseVersion, occurredAt: during };
      const refused = await only(as.rep, operation("appointment.update", change));
      expect(refused).toMatchObject({ outcome: "rejected", problem: { code: "not_found" } });
      expect(refused).not.toHaveProperty("record");
    }
  }
  const { appointments } = await prospectOf(as.rep2, id);
  expect(appointments.map(({ title }) => title).sort()).toEqual(["of Ravi", "of Rita"]);
});

test("a request that is no batch is refused as a whole", async () => {
  const one = create();
  const bad: unknown[] = [
    {},
    { deviceId: "t", operations: [] },
    { deviceId: "", operations: [one] },
    { deviceId: "t", operations: Array.from({ length: 201 }, () => create()) },
    { deviceId: "t", operations: [{ ...one, opId: "7" }] },
    { deviceId: "t", operations: [7] },
  ];
  for (const body of bad) problemOf(await as.rep("POST", "/api/sync/operations", body), 400, "validation_failed");
  const large = { deviceId: "t", operations: [create({ name: "x".repeat(1_000_001) })] };
  problemOf(await as.rep("POST", "/api/sync/operations", large), 413, "payload_too_large");
  expect(await outcomes(as.rep, [one])).toEqual(["applied"]);
});
