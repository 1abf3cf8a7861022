/** Verbs of prospects and attached records, for the laws of interleaved.ts: they run another verb between two table calls of each verb. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { all, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { packAddresses } from "#shared/prospects/address-rows.ts";
import { type JobWrite, writeByJob } from "#shared/prospects/bulk-write.ts";
import { notesAttributes, storedProspect } from "#shared/prospects/stored.ts";
import { currentDictionary, freshDictionary } from "#shared/reference/dictionary.ts";
import * as api from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { type Group, holds, type Law, type Process, replacesNothing, START, type Verb } from "./interleaved.ts";

const STREET = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

async function stage(context: Process) {
  const { caller, repId } = await newCompany(context);
  const { companyId } = caller;
  const rep: Caller = { companyId, userId: repId, role: "sales", permissions: [] };
  const tags: number[] = [];
  for (const value of ["roof", "hail"]) tags.push((await api.createTag(context, companyId, { value })).id);
  const { statuses: named } = await freshDictionary(context, companyId);
  const statuses = [...named.keys()];
  const { id: address } = await api.createAddress(context, companyId, STREET);
  const fields = { currentStatusId: statuses[0], assignedToUserId: repId, addressId: address };
  const { id } = await api.createProspect(context, caller, { name: "a", ...fields });
  const { id: note } = await api.createNote(context, caller, id, { body: "first" });
  const visit = { title: "visit", startAt: "2026-06-20T10:00:00.000Z" };
  const { id: appointment } = await api.createAppointment(context, caller, id, visit);
  const { id: bare } = await api.createProspect(context, caller, { name: "b", assignedToUserId: repId });
  // No prospect has this address.
  const { id: lone } = await api.createAddress(context, companyId, STREET);
  // An imported address has no row of its own before its first change.
  const imported = await context.ids.nextAddress(companyId);
  const packed = { ...STREET, id: imported, address2: null, prospectId: bare };
  await context.table.batchPut(packAddresses(companyId, "file", iso(START), [packed]));
  const { id: deleted } = await api.createProspect(context, caller, { name: "c" });
  await byJob(context, { caller }, deleted, { deletedAt: "2026-06-01T00:00:00.000Z" });
  return { caller, rep, id, deleted, statuses, tags, note, appointment, address, bare, lone, imported };
}
type At = Awaited<ReturnType<typeof stage>>;

async function byJob(
  context: Process,
  { caller }: { readonly caller: Caller },
  id: number,
  after: JobWrite["after"],
  deletedIf?: JobWrite["deletedIf"],
) {
  const { table } = context;
  const current = storedProspect(await table.get(keys.prospect(caller.companyId, id)));
  const dictionary = await currentDictionary(context, caller.companyId);
  return writeByJob(context, caller, current, { after, job: { jobId: 7, events: "each" }, dictionary, deletedIf });
}

const unnoted = all(...notesAttributes.map(missing));
const warm: Verb<At> = (context, { caller }) => freshDictionary(context, caller.companyId);

const changes: Group<At> = {
  first: ["delete"],
  stage,
  warm,
  // The delta entry of a note may name the assignee of the prospect. It is not compared: a verb that does not know the assignee omits it.
  ignored: ["assignee"],
  pairs: {
    status: ["another status", "delete"],
    name: ["status"],
    assignment: ["another status", "new note"],
    tags: ["status"],
    "no address": ["status"],
    delete: ["status", "new appointment", "new note"],
    "change by a job": ["another status"],
    "undo of an import": ["new note on the other"],
    "prospect of a device": ["prospect of a device"],
    "new note": ["delete", "assignment", "new note"],
    "new note of the rep": ["delete", "assignment"],
    "change of the note": ["change of the note by the rep", "deletion of the note", "assignment", "delete"],
    "change of the note by the rep": ["change of the note", "assignment", "delete"],
    "deletion of the note": ["change of the note", "another status", "delete"],
    "new appointment": ["moved appointment", "delete", "status"],
    "moved appointment": ["renamed appointment", "deletion of the appointment"],
    "renamed appointment": ["moved appointment", "delete"],
    "deletion of the appointment": ["renamed appointment", "new appointment"],
  },
  refusals: {
    status: { delete: "not_found" },
    "prospect of a device": { "prospect of a device": "conflict" },
    "undo of an import": { "new note on the other": "conflict" },
    "new appointment": { delete: "not_found" },
    "new note": { delete: "not_found" },
    "renamed appointment": { delete: "not_found" },
    "deletion of the note": { delete: "not_found" },
    "new note of the rep": { delete: "not_found", assignment: "not_found" },
    "change of the note": { delete: "not_found", "deletion of the note": "not_found" },
    "change of the note by the rep": { delete: "not_found", assignment: "not_found" },
    "moved appointment": { "deletion of the appointment": "not_found" },
  },
  verbs: {
    status: (context, { caller, id, statuses }) =>
      api.updateProspect(context, caller, id, { currentStatusId: statuses[1] }),
    "another status": (context, { caller, id, statuses }) =>
      api.updateProspect(context, caller, id, { currentStatusId: statuses[2] }),
    name: (context, { caller, id }) => api.updateProspect(context, caller, id, { name: "z" }),
    assignment: (context, { caller, id }) =>
      api.updateProspect(context, caller, id, { assignedToUserId: caller.userId }),
    tags: (context, { caller, id, tags }) => api.setTags(context, caller, id, { tagIds: [...tags] }),
    "no address": (context, { caller, id }) => api.updateProspect(context, caller, id, { addressId: null }),
    delete: (context, { caller, id }) => api.deleteProspect(context, caller, id),
    "change by a job": (context, at) => byJob(context, at, at.id, { statusId: at.statuses[3] ?? null }),
    "undo of an import": (context, at) =>
      byJob(context, at, at.bare, { deletedAt: "2026-06-01T00:00:00.000Z" }, unnoted),
    "prospect of a device": (context, { caller }) =>
      api.createProspect(context, caller, { clientRecordId: "00000000-0000-4000-8000-000000000000" }),
    "new note on the other": (context, { caller, bare }) => api.createNote(context, caller, bare, { body: "n" }),
    "new note": (context, { caller, id }) => api.createNote(context, caller, id, { body: "n" }),
    "new note of the rep": (context, { rep, id }) => api.createNote(context, rep, id, { body: "n" }),
    "change of the note": (context, { caller, note }) => api.updateNote(context, caller, note, { body: "second" }),
    "change of the note by the rep": (context, { rep, note }) => api.updateNote(context, rep, note, { body: "third" }),
    "deletion of the note": (context, { caller, note }) => api.deleteNote(context, caller, note),
    "new appointment": (context, { caller, id }) =>
      api.createAppointment(context, caller, id, { title: "t", startAt: "2026-06-10T10:00:00.000Z" }),
    "moved appointment": (context, { caller, appointment }) =>
      api.updateAppointment(context, caller, appointment, { startAt: "2026-06-05T10:00:00.000Z" }),
    "renamed appointment": (context, { caller, appointment }) =>
      api.updateAppointment(context, caller, appointment, { title: "other" }),
    "deletion of the appointment": (context, { caller, appointment }) =>
      api.deleteAppointment(context, caller, appointment),
  },
};

const addresses: Group<At> = {
  stage,
  pairs: {
    "other street": ["other city", "no address", "same address", "delete"],
    "other city": ["other street"],
    "street of the lone": ["city of the lone"],
    "imported address": ["city of the imported"],
    "city of the imported": ["imported address"],
    "no address": ["other street", "same address"],
    "same address": ["other street", "no address", "new address"],
    "new address": ["same address"],
    "new prospect": ["other street"],
    delete: ["other street"],
    restoration: ["restoration"],
  },
  verbs: {
    "other street": (context, { caller, address }) =>
      api.updateAddress(context, caller, address, { address1: "2 Main St" }),
    "other city": (context, { caller, address }) => api.updateAddress(context, caller, address, { city: "Boulder" }),
    "imported address": (context, { caller, bare, imported }) =>
      api.updateProspect(context, caller, bare, { addressId: imported }),
    "city of the imported": (context, { caller, imported }) =>
      api.updateAddress(context, caller, imported, { city: "Boulder" }),
    "street of the lone": (context, { caller, lone }) =>
      api.updateAddress(context, caller, lone, { address1: "2 Main St" }),
    "city of the lone": (context, { caller, lone }) => api.updateAddress(context, caller, lone, { city: "Boulder" }),
    "no address": (context, { caller, id }) => api.updateProspect(context, caller, id, { addressId: null }),
    "same address": (context, { caller, bare, address }) =>
      api.updateProspect(context, caller, bare, { addressId: address }),
    "new address": (context, { caller, bare }) => api.updateProspect(context, caller, bare, { address: STREET }),
    "new prospect": (context, { caller, address }) => api.createProspect(context, caller, { addressId: address }),
    delete: (context, { caller, id }) => api.deleteProspect(context, caller, id),
    restoration: (context, at) => byJob(context, at, at.deleted, { deletedAt: null }),
  },
};

const records = replacesNothing({
  stage,
  verbs: {
    prospect: (context, { caller }) => api.createProspect(context, caller, { name: "a" }),
    "prospect with a client's id": (context, { caller }) =>
      api.createProspect(context, caller, {
        clientRecordId: `00000000-0000-4000-8000-${context.clock.now()}`.slice(0, 36),
      }),
    note: (context, { caller, id }) => api.createNote(context, caller, id, { body: "n" }),
    appointment: (context, { caller, id }) =>
      api.createAppointment(context, caller, id, { title: "t", startAt: iso(context.clock.now()) }),
    address: (context, { caller }) => api.createAddress(context, caller.companyId, STREET),
  },
});

export const laws: Readonly<Record<string, Law>> = {
  "changes of one prospect, its notes and its appointments": holds(changes),
  "addresses and their copies": holds(addresses),
  "a prospect or an attached record with an id that is in use replaces no other one": records,
};
