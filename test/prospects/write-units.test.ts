/** Tests the units of creating and changing a prospect. In a transaction, each row and each condition check costs two write units. */
import { beforeAll, expect, test } from "vitest";
import { systemClock } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import * as verbs from "../harness/verbs.ts";
import { addRep, type Company, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
let one: ApiContext;
let other: ApiContext;
let company: Company;
let statusIds: number[];
beforeAll(async () => {
  [one, other] = [warmFunction(db, systemClock), warmFunction(db, systemClock)];
  company = await newCompany(one);
  const { companyId } = company.caller;
  for (let i = 0; i < 200; i++) {
    const named = { firstName: "Representative", lastName: `Number ${i}` };
    await addRep(one, companyId, { email: `many-${i}-of-${companyId}@x.test`, ...named });
  }
  statusIds = [...(await loadDictionary(one.table, companyId)).statuses.keys()];
  // This create loads ids and names into memory, so that the measured creates do not include the cost of loading them.
  await verbs.createProspect(one, company.caller, { currentStatusId: statusIds[0], address });
});

test("a warm patch reads the prospect and the version of the names, in one round trip", async () => {
  const { caller, repId } = company;
  const [from, to] = statusIds;
  const { id } = await verbs.createProspect(one, caller, { currentStatusId: from });
  const patch = { currentStatusId: to, assignedToUserId: repId, assignedByUserId: caller.userId };
  const { usage } = await metered(() => verbs.updateProspect(one, caller, id, patch));
  expect(usage).toMatchObject({ readUnits: 2, writeUnits: 6, rounds: 2 });
  const unchanged = await metered(() => verbs.updateProspect(one, caller, id, {}));
  expect(unchanged.usage).toMatchObject({ readUnits: 2, writeUnits: 0, rounds: 1 });
});

test("setting tags, creating a note and reading one prospect read only the version of the names, as a patch does, and a note also its prospect", async () => {
  const { caller } = company;
  const { id } = await verbs.createProspect(one, caller, {});
  await readProspect(one, caller, id);
  const tags = await metered(() => verbs.setTags(one, caller, id, { tagIds: [] }));
  expect(tags.usage).toMatchObject({ readUnits: 2, rounds: 1 });
  const note = await metered(() => verbs.createNote(one, caller, id, { body: "Call back" }));
  expect(note.usage).toMatchObject({ readUnits: 2, rounds: 2 });
  const detail = await metered(() => readProspect(one, caller, id));
  expect(detail.usage).toMatchObject({ readUnits: 4, rounds: 1 });
});

test("a patch neither writes nor shows a name that another function has changed", async () => {
  const { caller } = company;
  const { companyId } = caller;
  const [kept, status] = [
    await verbs.createStatus(one, companyId, { value: "Kept" }),
    await verbs.createStatus(one, companyId, { value: "Old" }),
  ];
  const tag = await verbs.createTag(one, companyId, { value: "Old tag" });
  const { id } = await verbs.createProspect(one, caller, { currentStatusId: kept.id });
  await verbs.setTags(one, caller, id, { tagIds: [tag.id] });

  await verbs.updateStatus(other, companyId, status.id, { value: "Renamed" });
  await verbs.updateStatus(other, companyId, kept.id, { value: "Kept, renamed".replace(",", "") });
  await verbs.updateTag(other, companyId, tag.id, { value: "Renamed tag" });
  const shown = await verbs.updateProspect(one, caller, id, { currentStatusId: status.id });
  expect(shown).toMatchObject({ currentStatus: { value: "Renamed" }, tags: [{ tag: { value: "Renamed tag" } }] });
  const [change] = (await readProspect(other, caller, id)).statusHistory;
  expect(change).toMatchObject({ status: { value: "Renamed" }, previousStatus: { value: "Kept renamed" } });

  await verbs.deactivateStatus(other, companyId, kept.id);
  await expect(verbs.updateProspect(one, caller, id, { currentStatusId: kept.id })).rejects.toMatchObject({
    faults: [{ pointer: "/currentStatusId", code: "invalid_reference" }],
  });
  const late = await verbs.createStatus(other, companyId, { value: "New elsewhere" });
  expect(await verbs.updateProspect(one, caller, id, { currentStatusId: late.id })).toMatchObject({
    currentStatus: { value: "New elsewhere" },
  });
});

const address = { address1: "1234 Camelback Rd", address2: "Apt 12", city: "San Antonio", state: "TX", zip: "78201" };
const plain = {
  name: "Maria Garcia",
  lat: 29.424512,
  lng: -98.494213,
  phoneNumber: "(303) 555-1234",
  secondaryPhoneNumber: "(303) 555-9999",
  emailAddress: "maria.garcia7@example.com",
  sourceId: "crm-10293847",
};

const creates: [what: string, input: () => NewProspect, writeUnits: number][] = [
  ["a name: its row and its entry in the index", () => ({ name: "Maria Garcia" }), 4],
  ["every field of its own", () => plain, 4],
  ["a status, which is checked", () => ({ ...plain, currentStatusId: statusIds[0] }), 6],
  ["an assignee, who is checked", () => ({ ...plain, assignedToUserId: company.repId }), 6],
  ["the caller as assignee", () => ({ ...plain, assignedToUserId: company.caller.userId }), 4],
  [
    "a status and an assignee: one check",
    () => ({ ...plain, currentStatusId: statusIds[0], assignedToUserId: company.repId }),
    6,
  ],
  ["a new address, which has a row of its own", () => ({ ...plain, address }), 6],
  ["everything", () => ({ ...plain, currentStatusId: statusIds[0], assignedToUserId: company.repId, address }), 8],
  ["more than a kilobyte of custom fields", () => ({ ...plain, customFieldData: { note: "x".repeat(1_000) } }), 6],
];

test.each(creates)("the cost of a create with %s", async (_, input, writeUnits) => {
  const { usage } = await metered(() => verbs.createProspect(one, company.caller, input()));
  expect(usage).toMatchObject({ writeUnits, rounds: 1 });
});
