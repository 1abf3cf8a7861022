/**
 * Verbs of names, territories, jobs, idempotency keys and the lock of the company index, for the laws of interleaved.ts: they run another
 * verb between two table calls of each verb.
 */
import { iso } from "#shared/clock.ts";
import { readHead } from "#shared/company-index/manifest.ts";
import {
  releaseCompactionLock,
  renewCompactionLock,
  takeCompactionLock,
} from "#shared/company-index/repair/rebuild.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { Held } from "#shared/db/lease.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { cancelJob, pauseJob, resumeJob } from "#shared/jobs/bulk/control.ts";
import { pause } from "#shared/jobs/bulk/queue.ts";
import { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { completion, failUnlessCompleted } from "#shared/jobs/import/lifecycle.ts";
import { findImport } from "#shared/jobs/import/requests.ts";
import { RunningJob, sweepJobs } from "#shared/jobs/job.ts";
import * as notes from "#shared/prospects/notes.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { ensureTags } from "#shared/reference/values.ts";
import { importTerritories } from "#shared/territories/import.ts";
import { commanded } from "../harness/commanded.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import * as api from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import { holds, type Law, type Process, replacesNothing, type Verb } from "./interleaved.ts";
import { links } from "./limit-stage.ts";
import { identities, newRep } from "./user-verbs.ts";

const warm: Verb<Company> = (context, { caller }) => freshDictionary(context, caller.companyId);

const names = holds({
  stage: async (context) => {
    const company = await newCompany(context);
    const { companyId } = company.caller;
    const { id: tag } = await api.createTag(context, companyId, { value: "roof" });
    const { id: other } = await api.createTag(context, companyId, { value: "door" });
    const { statuses } = await freshDictionary(context, companyId);
    return { ...company, statuses: [...statuses.keys()], tag, other };
  },
  warm,
  pairs: {
    "new tag": ["new tag", "new tags of an import"],
    "new tags of an import": ["new tag"],
    "renamed tag": ["colour of the tag", "new tag"],
    "colour of the tag": ["renamed tag", "deletion of the tag"],
    "deletion of the tag": ["colour of the tag"],
    "new status": ["new status", "new tag"],
    "inactive status": ["renamed status"],
    "renamed status": ["inactive status", "new status"],
    "new prospect with a status": ["inactive status"],
    "new prospect of the rep": ["disabled rep"],
    "new prospect of the rep with a status": ["inactive status", "disabled rep"],
  },
  refusals: {
    "new tag": { "new tag": "conflict", "new tags of an import": "conflict" },
    "renamed tag": { "new tag": "conflict" },
    "colour of the tag": { "deletion of the tag": "not_found" },
    "new status": { "new status": "conflict" },
    "renamed status": { "new status": "conflict" },
    "new prospect with a status": { "inactive status": "validation_failed" },
    "new prospect of the rep": { "disabled rep": "validation_failed" },
    "new prospect of the rep with a status": {
      "inactive status": "validation_failed",
      "disabled rep": "validation_failed",
    },
  },
  verbs: {
    "new tag": (context, { caller }) => api.createTag(context, caller.companyId, { value: "Hail" }),
    "new tags of an import": (context, { caller }) => ensureTags(context, caller.companyId, ["hail", "roof"]),
    "renamed tag": (context, { caller, tag }) => api.updateTag(context, caller.companyId, tag, { value: "hail" }),
    "colour of the tag": (context, { caller, tag }) =>
      api.updateTag(context, caller.companyId, tag, { color: "#000000" }),
    "deletion of the tag": (context, { caller, tag }) => api.deleteTag(context, caller.companyId, tag),
    "new status": (context, { caller }) => api.createStatus(context, caller.companyId, { value: "Later" }),
    "inactive status": (context, { caller, statuses }) =>
      api.updateStatus(context, caller.companyId, statuses[0] ?? 0, { isActive: false }),
    "renamed status": (context, { caller, statuses }) =>
      api.updateStatus(context, caller.companyId, statuses[0] ?? 0, { value: "later" }),
    "disabled rep": (context, { caller, repId }) => api.updateUser(context, caller, repId, { isActive: false }),
    "new prospect with a status": (context, { caller, statuses }) =>
      api.createProspect(context, caller, { currentStatusId: statuses[0] }),
    "new prospect of the rep": (context, { caller, repId }) =>
      api.createProspect(context, caller, { assignedToUserId: repId }),
    "new prospect of the rep with a status": (context, { caller, repId, statuses }) =>
      api.createProspect(context, caller, { assignedToUserId: repId, currentStatusId: statuses[0] }),
  },
});

const square = (west: number): [number, number][] => [
  [west, 1],
  [west, 2],
  [west + 1, 2],
];
const part = (name: string) => ({ name, polygon: square(5), totalProperties: 1, assignedToUserId: null });

const territories = holds({
  stage: async (context) => {
    const company = await newCompany(context);
    return { ...company, ...(await api.createTerritory(context, company.caller, part("north"))) };
  },
  pairs: {
    name: ["polygon", "delete"],
    polygon: ["name", "create"],
    delete: ["name", "polygon", "delete"],
    create: ["create"],
    import: ["import", "create"],
  },
  refusals: { name: { delete: "not_found" }, delete: { delete: "not_found" } },
  verbs: {
    name: (context, { caller, id }) => api.updateTerritory(context, caller, id, { name: "z" }),
    polygon: (context, { caller, id }) => api.updateTerritory(context, caller, id, { polygon: square(7.5) }),
    delete: (context, { caller, id }) => api.deleteTerritory(context, caller, id),
    create: (context, { caller }) => api.createTerritory(context, caller, part("south")),
    import: (context, { caller }) =>
      importTerritories({ ...context, requestKey: "key" }, caller, {
        type: "FeatureCollection",
        features: [feature("east"), feature("north")],
      }),
  },
});
const feature = (name: string) => ({
  type: "Feature" as const,
  properties: { name },
  geometry: { type: "Polygon", coordinates: [[...square(1), [1, 1]]] },
});

const quiet = { tries: 0, ms: 0 };

async function newJob(context: Process, { caller }: Company): Promise<number> {
  const id = await context.ids.next();
  const dictionary = await freshDictionary(context, caller.companyId);
  const job = { id, kind: "prospect_bulk" as const, events: "summary" as const, total: 1, chunks: 1, action: {} };
  await api.startJob(context, caller, dictionary, job);
  return id;
}

const leaseOf = async ({ table, clock }: Process, { caller, running }: Company & { readonly running: number }) => {
  const key = keys.bulkJob(caller.companyId, running);
  const stored = StoredBulk.parse(await table.get(key));
  const lease = { key, schema: StoredBulk, attribute: "runsUntil", ms: 60_000 };
  return new RunningJob(clock, new Held({ table, clock }, lease, stored, stored.runsUntil ?? ""));
};
const jobs = holds({
  stage: async (context) => {
    const company = await newCompany(context);
    const { caller } = company;
    const running = await newJob(context, company);
    const ended = await newJob(context, company);
    const queued = await newJob(context, company);
    const paused = await newJob(context, company);
    await pauseJob(context, context.jobs, caller, paused, quiet);
    await cancelJob(context, context.jobs, caller, ended, quiet);
    const { table } = context;
    const { companyId } = caller;
    await table.write({ update: keys.bulkJob(companyId, ended), change: { set: { state: "completed", changed: 1 } } });
    const runsUntil = iso(context.clock.now() + 60_000);
    await table.write({
      update: keys.bulkJob(companyId, running),
      change: { set: { state: "running", isOpen: true, wanted: "paused", runsUntil } },
    });
    const upload = await api.beginImport(context, links, caller, {});
    await table.write({ update: keys.import(companyId, upload.id), change: { set: { state: "running", runsUntil } } });
    return { ...company, ended, running, queued, paused, upload: upload.id };
  },
  // `version` counts the changes of the job queue, and is not compared: a pause that is refused because the job was cancelled meanwhile may
  // have counted a change.
  ignored: ["version"],
  pairs: {
    "pause the running": ["heartbeat", "end", "pause of itself"],
    "resume the running": ["end", "cancel the running", "pause of itself"],
    "cancel the running": ["pause of itself"],
    "pause the queued": ["cancel the queued", "new job", "start the queued"],
    "cancel the queued": ["pause the queued", "new job", "start the queued"],
    "resume the paused": ["new job", "resume the paused"],
    "new job": ["new job", "cancel the queued"],
    undo: ["undo", "new job"],
    heartbeat: ["end", "sweep"],
    end: ["heartbeat"],
    sweep: ["sweep", "heartbeat"],
    "cancel the import": ["complete the import", "sweep"],
    "give the import up": ["complete the import"],
    "complete the import": ["cancel the import"],
  },
  refusals: {
    "pause the running": { end: "conflict" },
    "resume the running": { end: "conflict" },
    "pause the queued": { "cancel the queued": "conflict" },
    undo: { undo: "conflict" },
    heartbeat: { end: "conflict" },
    "cancel the import": { "complete the import": "conflict" },
    "complete the import": { "cancel the import": "conflict" },
  },
  verbs: {
    "pause the running": (context, { caller, running }) => pauseJob(context, context.jobs, caller, running, quiet),
    "resume the running": (context, { caller, running }) => resumeJob(context, context.jobs, caller, running),
    "pause the queued": (context, { caller, queued }) => pauseJob(context, context.jobs, caller, queued, quiet),
    "cancel the queued": (context, { caller, queued }) => cancelJob(context, context.jobs, caller, queued, quiet),
    "resume the paused": (context, { caller, paused }) => resumeJob(context, context.jobs, caller, paused),
    "new job": newJob,
    undo: (context, { caller, ended }) => api.beginUndo(context, context.jobs, caller, ended, {}),
    // The heartbeat adds 1 to the number of handled records that it has read. An outdated number would make the stored number wrong.
    heartbeat: async (context, at) => {
      const lease = await leaseOf(context, at);
      await lease.save({ done: lease.stored.done + 1 });
    },
    "cancel the running": (context, { caller, running }) => cancelJob(context, context.jobs, caller, running, quiet),
    "start the queued": async (context, { caller, queued }) => {
      const change = { set: { state: "running", isOpen: true } };
      const update = keys.bulkJob(caller.companyId, queued);
      await context.table.write({ update, change, when: equals("state", "queued") });
    },
    "complete the import": async (context, { caller, upload }) => {
      const stored = await findImport(context, caller.companyId, upload);
      if (stored.state !== "running") throw new ConditionFailed([]);
      const isHeld = equals("runsUntil", stored.runsUntil);
      await context.table.transact(completion({ stored, isHeld }, context.clock.now()));
    },
    // The invocation that runs the job has read the request to pause, and pauses the job.
    "pause of itself": async (context, at) => {
      const { stored, isHeld } = await leaseOf(context, at);
      await pause(context, stored, isHeld);
    },
    end: async (context, at) => (await leaseOf(context, at)).end({ state: "completed" }),
    sweep: (context) => sweepJobs(context),
    "cancel the import": (context, { caller, upload }) => api.cancelImport(context, caller, upload),
    "give the import up": async (context, { caller, upload }) =>
      failUnlessCompleted(context, await findImport(context, caller.companyId, upload)),
  },
});

const lock: Verb<Company> = async (context, { caller: { companyId } }) => {
  const head = readHead(await context.table.get(keys.indexHead(companyId)));
  if ((await takeCompactionLock(context, companyId, head, `${await context.ids.next()}`)) === undefined) {
    throw new ConditionFailed([]);
  }
};
const note =
  (body: string): Verb<Company & { readonly id: number }> =>
  (context, { caller, id }) =>
    commanded(context, caller, keyedPost("same", body), (own) => notes.createNote(own, caller, id, { body }));

const index = holds({
  stage: async (context) => {
    const company = await newCompany(context);
    const { id } = await api.createProspect(context, company.caller, { name: "a" });
    await takeCompactionLock(context, company.caller.companyId, readHead(undefined), "first");
    return { ...company, id };
  },
  // Fields of an idempotency key's row that are not compared: `run` is a random id, and the encryption of `answer` has a random result.
  ignored: ["answer", "run"],
  pairs: {
    lock: ["lock", "names change"],
    "renewed lock": ["lock"],
    "released lock": ["lock"],
    note: ["note", "other note", "late note"],
  },
  refusals: { note: { "other note": "idempotency_mismatch" }, "renewed lock": { lock: "conflict" } },
  verbs: {
    lock,
    // A rebuild of the index reads the head between two renewals of its lock, so this verb reads the head first.
    "renewed lock": async (context, { caller: { companyId } }) => {
      await context.table.get(keys.indexHead(companyId));
      await renewCompactionLock(context, companyId, "first");
    },
    "released lock": (context, { caller }) => releaseCompactionLock(context, caller.companyId, "first"),
    "names change": (context, { caller }) => api.createTag(context, caller.companyId, { value: "x" }),
    note: note("a"),
    "other note": note("b"),
    "late note": (context, at) => note("a")({ ...context, clock: { now: () => context.clock.now() + 31_000 } }, at),
  },
});

const now = ({ clock }: Process): string => `${clock.now()}`;
const records = replacesNothing({
  stage: newCompany,
  verbs: {
    tag: (context, { caller }) => api.createTag(context, caller.companyId, { value: now(context) }),
    status: (context, { caller }) => api.createStatus(context, caller.companyId, { value: now(context) }),
    user: (context, { caller }) => api.createUser(context, identities, caller, newRep(`${now(context)}@x.test`)),
    company: (context) =>
      createCompany(context, {
        name: "c",
        owner: { email: `owner-${now(context)}@x.test`, firstName: "O", lastName: "O", sub: now(context) },
      }),
    territory: (context, { caller }) => api.createTerritory(context, caller, part("a")),
    job: newJob,
    import: (context, { caller }) => api.beginImport(context, links, caller, {}),
    "import without a valid row": (context, { caller }) =>
      api.importFile(context, caller, Buffer.from("name,lat\n,x\n")),
    export: (context, { caller }) => api.beginExport(context, context.jobs, caller, {}),
  },
});

export const laws: Readonly<Record<string, Law>> = {
  "names of statuses and tags, and prospects that use them": names,
  territories,
  "jobs and imports": jobs,
  "locks of the index and idempotency keys": index,
  "a record with an id that is in use replaces no other record": records,
};
