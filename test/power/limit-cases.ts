/** Lists how each constant of limits.ts is tested at its value and one beyond. limits-elsewhere.ts names those that other folders test. */
import { expect } from "vitest";
import { bearerToken } from "#shared/auth/token.ts";
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { once } from "#shared/http/idempotency.ts";
import { requireAllowedCount } from "#shared/jobs/bulk/create.ts";
import { requireRoom } from "#shared/jobs/bulk/queue.ts";
import { undoableUntilMs } from "#shared/jobs/bulk/read.ts";
import { NewBulk } from "#shared/jobs/bulk/schema.ts";
import { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { readExport } from "#shared/jobs/export/requests.ts";
import * as limits from "#shared/limits.ts";
import { NewAddress } from "#shared/prospects/address-input.ts";
import { linkWrite } from "#shared/prospects/addresses.ts";
import { reassignedAt, wasAssigned } from "#shared/prospects/assignments.ts";
import { CalendarQuery, listAppointments } from "#shared/prospects/calendar.ts";
import { Mapping, MappingText, readHeader } from "#shared/prospects/csv/header.ts";
import { openCsv } from "#shared/prospects/csv/read.ts";
import { FilterText, SearchText } from "#shared/prospects/filter.ts";
import { NewAppointment, NewNote, NewProspect } from "#shared/prospects/input.ts";
import { ListQuery } from "#shared/prospects/list/list.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { NewTag, TagChoice } from "#shared/reference/input.ts";
import { RingInput } from "#shared/reference/polygon.ts";
import { invitationEndsAt, isEnded, NewUser } from "#shared/reference/user.ts";
import { ActivityQuery, activityReport } from "#shared/reports/activity.ts";
import { Email, PageSize } from "#shared/schema.ts";
import { ChangesQuery } from "#shared/sync/changes/schema.ts";
import { planOf } from "#shared/sync/operations/batch.ts";
import { OperationBatch } from "#shared/sync/operations/schema.ts";
import { NewTerritories } from "#shared/territories/import.ts";
import { EventFilter } from "#shared/webhooks/subscriptions/filter.ts";
import { NewRegistration, NewWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import * as api from "../harness/verbs.ts";
import { consume, newPipeline, publish } from "../webhooks/pipeline.ts";
import type { files } from "./limit-cases-files.ts";
import type { sessions } from "./limit-cases-sessions.ts";
import type { within } from "./limit-cases-within.ts";
import { type Accepts, type Case, company, DAY_MS, db, LOCAL, letters, links, NOW, succeeds } from "./limit-stage.ts";
import type { others } from "./limits-elsewhere.ts";

type Elsewhere = keyof typeof files | keyof typeof others | keyof typeof sessions | keyof typeof within;

interface Parser {
  safeParse(value: unknown): { success: boolean };
}
const parses = (schema: Parser, value: unknown): boolean => schema.safeParse(value).success;
const ADDRESS = { address1: "a", city: "b", state: "c", zip: "d" };
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);
const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `v${i}`);
const field =
  (schema: Parser, name: string, others: object = {}): Accepts =>
  (count) =>
    parses(schema, { ...others, [name]: letters(count) });

const visit = { title: "t", startAt: "2026-06-01" };
const hook = { name: "w", url: "https://a.test/", registrations: [] };
const registration = { event: "e", filter: null, delayMinutes: 0, triggerMode: "manual", manualTriggerButtonText: "b" };
const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
const point = (_: unknown, i: number): [number, number] => [i / 1_000, (i % 7) / 1_000];
const standardSecret = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 1).toString("base64")}`;
const operation = { opId: "0b0b3c1c-0000-4000-8000-000000000000", type: "note.create" };
async function* piecesOf(...pieces: string[]) {
  yield* pieces;
}

const silentQueue = { send: async () => undefined, returnIn: async () => undefined };

/** Returns true if the service accepts a note that a device made at this time. */
async function acceptsNoteOf(ms: number): Promise<boolean> {
  const { context, caller } = await company();
  const { id } = await api.createProspect(context, caller, {});
  const note = { ...operation, type: "note.create" as const, prospectId: id, fields: { body: "b" } };
  return succeeds(() => planOf(context, caller, { ...note, occurredAt: iso(ms) }, id));
}

export const cases: Record<Exclude<keyof typeof limits, Elsewhere>, Case> = {
  name: { most: field(NewProspect, "name") },
  phone: { most: field(NewProspect, "phoneNumber") },
  email: { most: (count) => parses(Email, `${letters(count - 7)}@b.test`) },
  accessToken: { most: (count) => bearerToken(`Bearer ${letters(count - 4)}.b.c`) !== undefined },
  subject: { most: field(NewUser, "sub", { email: "a@b.test", firstName: "a", lastName: "b", role: "sales" }) },
  source: { most: field(NewProspect, "source") },
  sourceId: { most: field(NewProspect, "sourceId") },
  note: { most: field(NewNote, "body") },
  appointmentTitle: { most: field(NewAppointment, "title", visit) },
  appointmentLocation: { most: field(NewAppointment, "location", visit) },
  appointmentNotes: { most: field(NewAppointment, "notes", visit) },
  calendarDays: {
    is: async (days) => {
      const { context, caller } = await company();
      const { id } = await api.createProspect(context, caller, {});
      for (const ms of [-1, 1]) {
        const startAt = iso(NOW + days * DAY_MS + ms);
        await api.createAppointment(context, caller, id, { title: `${ms}`, startAt });
      }
      const found: string[] = [];
      for await (const { title } of await listAppointments(context, caller, CalendarQuery.parse({}))) found.push(title);
      expect(found).toEqual(["-1"]);
    },
  },
  calendarDaysMax: {
    most: async (days) => {
      const { context, caller } = await company();
      const query = CalendarQuery.parse({ from: iso(NOW), to: iso(NOW + days * DAY_MS) });
      return succeeds(() => listAppointments(context, caller, query));
    },
  },
  search: { most: (count) => parses(SearchText, letters(count)) },
  url: { most: (count) => parses(NewWebhook, { ...hook, url: `https://a.test/${letters(count - 15)}` }) },
  displayValue: { most: field(NewTag, "value") },
  tagsPerProspect: { most: (count) => parses(TagChoice, { tagIds: numbers(count) }) },
  addressLine: { most: field(NewAddress, "address1", ADDRESS) },
  formattedAddress: { most: field(NewAddress, "formattedAddress", ADDRESS) },
  prospectsPerAddress: {
    most: (count) =>
      succeeds(() => {
        const address = { ...ADDRESS, type: "address" as const, id: 1, address2: null, formattedAddress: "e" };
        const stored = { ...address, companyId: 1, version: 1, links: 0, prospectIds: new Set(numbers(count - 1)) };
        linkWrite({ ...stored, createdAt: iso(NOW), updatedAt: iso(NOW) }, count);
      }),
  },
  polygonPointsMin: { least: (count) => parses(RingInput, Array.from({ length: count }, point)) },
  polygonPointsMax: { most: (count) => parses(RingInput, Array.from({ length: count }, point)) },
  territoryFeatures: {
    most: (count) => parses(NewTerritories, { type: "FeatureCollection", features: Array.from({ length: count }) }),
  },
  eventName: { most: field(NewRegistration, "event", registration) },
  buttonText: { most: field(NewRegistration, "manualTriggerButtonText", registration) },
  secretKey: { most: field(NewWebhook, "secretKey", hook) },
  secretKeyMin: { least: field(NewWebhook, "secretKey", hook) },
  standardKeyMin: { least: (bytes) => parses(NewWebhook, { ...hook, secretKey: standardSecret(bytes) }) },
  standardKey: { most: (bytes) => parses(NewWebhook, { ...hook, secretKey: standardSecret(bytes) }) },
  customFieldBytes: { most: (bytes) => parses(NewProspect, { customFieldData: { a: letters(bytes - 8) } }) },
  customFieldKeys: {
    most: (count) =>
      parses(NewProspect, { customFieldData: Object.fromEntries(texts(count).map((name) => [name, 1])) }),
  },
  customFieldDepth: { most: (depth) => parses(NewProspect, { customFieldData: nested(depth) }) },
  pageSizeDefault: { is: (size) => expect(ListQuery.parse({}).pageSize).toBe(size) },
  pageSizeMax: {
    is: (size) => expect([size - 1, size, size + 1].map((n) => PageSize.parse(`${n}`))).toEqual([size - 1, size, size]),
  },
  notesInDetail: {
    is: async (count) => {
      const { context, caller } = await company();
      const { id } = await api.createProspect(context, caller, {});
      for (const body of texts(count + 1)) await api.createNote(context, caller, id, { body });
      expect((await readProspect(context, caller, id)).notes.map(({ body }) => body)).not.toContain("v0");
      expect((await readProspect(context, caller, id)).notes).toHaveLength(count);
    },
  },
  queryParameter: {
    most: (count) => parses(FilterText, letters(count)) && parses(MappingText, `{"a":null}`.padEnd(count)),
  },
  idempotencyKey: {
    most: async (count) => {
      const { context, caller } = await company();
      return succeeds(() => once(context, caller, keyedPost(letters(count)), {}, async () => 1));
    },
  },
  operationsAtOnce: {
    most: (count) =>
      parses(OperationBatch, { deviceId: "d", operations: Array.from({ length: count }, () => operation) }),
  },
  deviceId: { most: field(OperationBatch, "deviceId", { operations: [operation] }) },
  factAgeMs: { most: (ms) => acceptsNoteOf(NOW - ms) },
  clockAheadMs: { most: (ms) => acceptsNoteOf(NOW + ms) },
  pastAssignmentsMs: {
    is: (ms) => {
      const past = (until: number): number[] => [until - 1, 7, 1];
      const assigned = (until: number) => ({ pastAssignments: past(until), assignedToUserId: 8 });
      const kept = [ms, ms + 1].map((age) =>
        wasAssigned(
          { companyId: 1, userId: 7, role: "sales", permissions: [] },
          reassignedAt({ ...assigned(NOW - age), createdAt: iso(NOW - age), assignedAt: iso(NOW - age) }, NOW),
          iso(NOW - age),
        ),
      );
      expect(kept).toEqual([true, false]);
    },
  },
  jobBytes: {
    most: async (bytes) => {
      const { context, caller } = await company();
      return succeeds(() => api.beginImport(context, links, caller, { bytes }));
    },
  },
  bulkRecords: { most: (count) => succeeds(() => requireAllowedCount(count)) },
  bulkIds: {
    most: (count) => parses(NewBulk, { ids: numbers(count), action: { delete: true } }),
  },
  bulkWaiting: {
    // The queue already has `count - 1` waiting and paused jobs, so there is room for one more. The running job does not count.
    most: (count) =>
      succeeds(() => {
        requireRoom({ type: "bulkQueue", running: 1, waiting: numbers(count - 2), paused: [9], version: 1 });
      }),
  },
  bulkKeptMs: {
    is: (ms) => {
      const rest = { chunks: 1, done: 1, runs: 0 };
      const counts = { total: 1, changed: 1, unchanged: 0, skipped: 0, failed: 0, ...rest };
      const times = { createdAt: iso(NOW), updatedAt: iso(NOW), endedAt: iso(NOW) };
      const job = { type: "bulkJob", id: 1, companyId: 1, kind: "prospect_bulk", events: "each", state: "completed" };
      const flags = { isOpen: false, isAdmitted: false, createdBy: 1 };
      expect(undoableUntilMs(StoredBulk.parse({ ...job, ...counts, ...times, ...flags }))).toBe(NOW + ms);
    },
  },
  openJobs: {
    most: async (count) => {
      const { context, caller } = await company();
      const rowOf = (id: number) => ({ ...keys.openImport(caller.companyId, id), type: "openImport", id });
      await context.table.batchPut(numbers(count - 1).map(rowOf));
      return succeeds(() => api.beginImport(context, links, caller, {}));
    },
  },
  exportKeptDays: {
    is: async (days) => {
      const { context, caller, now } = await company();
      const { id } = await api.beginExport(context, silentQueue, caller, {});
      const completed = { state: "completed", updatedAt: iso(NOW) };
      await context.table.write({ update: keys.export(caller.companyId, id), change: { set: completed } });
      const files: boolean[] = [];
      for (const more of [-1, 0]) {
        now.ms = NOW + days * DAY_MS + more;
        files.push((await readExport(context, links, caller, id)).file !== null);
      }
      expect(files).toEqual([true, false]);
    },
  },
  mappedColumns: { most: (count) => parses(Mapping, Object.fromEntries(texts(count).map((name) => [name, null]))) },
  csvHeader: { most: (count) => parses(Mapping, { [letters(count)]: null }) },
  ignoredColumns: {
    is: (count) => expect(readHeader(["name", ...texts(count + 1)], { delimiter: "," }).ignored).toHaveLength(count),
  },
  ignoredColumn: {
    is: (length) =>
      expect([...readHeader(["name", letters(length + 1)], { delimiter: "," }).ignored]).toEqual([letters(length)]),
  },
  csvRow: {
    most: (length) =>
      succeeds(async () => Array.fromAsync((await openCsv(piecesOf("name\n", letters(length), ""))).rows)),
  },
  csvBlankLines: {
    most: (count) =>
      succeeds(async () => Array.fromAsync((await openCsv(piecesOf(`name\n${"\n".repeat(count + 1)}`))).rows)),
  },
  invitationMs: {
    is: (ms) => {
      const invitedUntil = invitationEndsAt(NOW);
      expect([isEnded({ invitedUntil }, NOW + ms - 1), isEnded({ invitedUntil }, NOW + ms)]).toEqual([false, true]);
    },
  },
  registrationsPerWebhook: {
    most: (count) => parses(NewWebhook, { ...hook, registrations: Array.from({ length: count }, () => registration) }),
  },
  failingMs: {
    is: async (ms) => {
      const states: unknown[] = [];
      for (const more of [-1, 0]) {
        const at = await newPipeline(db());
        at.answers = () => ({ status: 500 });
        await publish(at);
        const key = keys.webhook(at.companyId, at.webhookId);
        await db().direct.write({ update: key, change: { set: { failingSince: iso(at.clock - ms - more) } } });
        const [first] = at.queue.splice(0);
        if (first !== undefined) await consume(at, first.message, false);
        states.push((await db().direct.get(key))?.status);
      }
      expect(states).toEqual(["active", "paused"]);
    },
  },
  delayMinutesMax: { most: (delayMinutes) => parses(NewRegistration, { ...registration, delayMinutes }) },
  filterDepth: { most: (depth) => parses(EventFilter, nested(depth)) },
  filterKeys: { most: (count) => parses(EventFilter, Object.fromEntries(texts(count).map((name) => [name, 1]))) },
  filterBytes: { most: (bytes) => parses(EventFilter, { a: letters(bytes - 8) }) },
  replayedDeliveries: {
    // The test simulates a table with this number of sent deliveries, because writing 100 000 real rows would take minutes.
    most: async (count) => {
      const { context, caller } = await company();
      const { id } = await api.createWebhook(context, caller.companyId, { name: "w", url: LOCAL, registrations: [] });
      const sent = { state: "delivered", attempt: 1, planFrom: 1 };
      const row = { type: "delivery", id: `dlv_${letters(29)}`, registrationId: null, ...sent };
      let partitions = 0;
      const query: typeof context.table.query = async function* (spec) {
        if (spec.fields === undefined) yield* context.table.query(spec);
        else if (partitions++ === 0) for (let i = 0; i < count; i++) yield row;
      };
      const range = { from: iso(NOW - DAY_MS), deliveries: "undelivered" as const };
      const own = { ...context, table: { ...context.table, query } };
      return succeeds(() => api.startReplay(own, silentQueue, caller.companyId, id, range));
    },
  },
  queueDelaySeconds: {
    is: (seconds) => {
      const delays = [-1, 0, 1].map((more) => delaySecondsUntil(NOW + (seconds + more) * 1_000, NOW));
      expect(delays).toEqual([seconds - 1, seconds, seconds]);
    },
  },
  activityDays: {
    most: async (days) => {
      const { context, caller } = await company();
      // The range may be an hour longer, because a day may have 25 hours.
      const query = ActivityQuery.parse({
        from: iso(NOW),
        to: iso(NOW + days * DAY_MS + (days === limits.activityDays ? 3_600_000 : 0)),
        groupBy: "day",
      });
      return succeeds(() => activityReport(context, caller, query));
    },
  },
  changesDefault: { is: (count) => expect(ChangesQuery.parse({}).limit).toBe(count) },
  changesMax: { most: (count) => parses(ChangesQuery, { limit: `${count}` }) },
  changesCursor: { most: field(ChangesQuery, "cursor") },
};
