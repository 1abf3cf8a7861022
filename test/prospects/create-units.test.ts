/** Tests the write units of creating a prospect: two for each row and for each condition check in its transaction. */
import { beforeAll, expect, test } from "vitest";
import { systemClock } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createProspect } from "../harness/verbs.ts";
import { type Company, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
let context: ApiContext;
let company: Company;
let currentStatusId: number | undefined;
beforeAll(async () => {
  context = warmFunction(db, systemClock);
  company = await newCompany(context);
  [currentStatusId] = (await loadDictionary(context.table, company.caller.companyId)).statuses.keys();
  // The first create loads ids and names into memory. It is not measured, so that the measured creates do not include this cost.
  await createProspect(context, company.caller, { currentStatusId, address });
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
  ["a status, which is checked", () => ({ ...plain, currentStatusId }), 6],
  ["an assignee, who is checked", () => ({ ...plain, assignedToUserId: company.repId }), 6],
  ["the caller as assignee", () => ({ ...plain, assignedToUserId: company.caller.userId }), 4],
  ["a status and an assignee: one check", () => ({ ...plain, currentStatusId, assignedToUserId: company.repId }), 6],
  ["a new address, which has a row of its own", () => ({ ...plain, address }), 6],
  ["everything", () => ({ ...plain, currentStatusId, assignedToUserId: company.repId, address }), 8],
  ["more than a kilobyte of custom fields", () => ({ ...plain, customFieldData: { note: "x".repeat(1_000) } }), 6],
];

test.each(creates)("the cost of a create with %s", async (_, input, writeUnits) => {
  const { usage } = await metered(() => createProspect(context, company.caller, input()));
  expect(usage).toMatchObject({ writeUnits, rounds: 1 });
});
