/** Tests limits that concern more than the fields of a single request. */
import { randomUUID } from "node:crypto";
import { Resolver } from "node:dns/promises";
import type { ServerResponse } from "node:http";
import { expect, vi } from "vitest";
import { iso } from "#shared/clock.ts";
import { encodeFacts } from "#shared/company-index/facts.ts";
import type { ApiContext } from "#shared/context.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import * as keys from "#shared/db/keys.ts";
import { answerBytes, assertAnswerFits } from "#shared/http/answer.ts";
import { once } from "#shared/http/idempotency.ts";
import * as limits from "#shared/limits.ts";
import { createResolver, LookupFailed } from "#shared/outbound/dns.ts";
import { holdersOf, reassignedAt, wasAssigned } from "#shared/prospects/assignments.ts";
import { listAddresses } from "#shared/prospects/list/addresses.ts";
import { prospectItem, storedProspect } from "#shared/prospects/stored.ts";
import { freshDictionary, recentDictionary } from "#shared/reference/dictionary.ts";
import { ActivityQuery, activityReport } from "#shared/reports/activity.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { readFeature } from "#shared/territories/feature.ts";
import { signatureHeaders } from "#shared/webhooks/deliver/request.ts";
import { debounce, windowKeyOf } from "#shared/webhooks/events/debounce.ts";
import type { Match } from "#shared/webhooks/events/matching.ts";
import { http, send } from "../harness/listening.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import { beginImport, createProspect, createTag, createWebhook, rotateSecret } from "../harness/verbs.ts";
import { type Case, company, DAY_MS, LOCAL, letters, links, NOW, repeatedAfter, succeeds } from "./limit-stage.ts";

/** Assigns a prospect to the users 1, 2, … for these milliseconds. Returns the users whose assignment the prospect's row still contains. */
function knownUsers(lengthsMs: readonly number[]): number[] {
  let [nowMs, prospect] = [NOW, reassignedAt({ assignedToUserId: null, createdAt: iso(NOW) }, NOW)];
  const begins: number[] = [];
  for (const [i, ms] of lengthsMs.entries()) {
    begins.push(nowMs);
    nowMs += ms;
    prospect = reassignedAt({ ...prospect, createdAt: iso(NOW), assignedToUserId: i + 1 }, nowMs);
  }
  const isKnown = (begin: number, i: number): boolean =>
    wasAssigned({ companyId: 1, userId: i + 1, role: "sales", permissions: [] }, prospect, iso(begin));
  return begins.flatMap((begin, i) => (isKnown(begin, i) ? [i + 1] : []));
}

/** Returns true if a caller who sees only assigned prospects finds the address in the block of ids with this number, counted from 0. */
async function findsAddressIn(number: number): Promise<boolean> {
  const { context, caller } = await company();
  const { companyId } = caller;
  const address = { ...{ id: number * keys.IDS_PER_PARTITION, address1: "a", address2: null, city: "b" }, zip: "c" };
  const item = { ...address, state: "d", formattedAddress: null, type: "address", companyId, version: 1, links: 0 };
  const query: ApiContext["table"]["query"] = async function* ({ pk }) {
    if (pk === keys.addressRanges(companyId).pk) yield { type: "addressRange", from: 0, to: number };
    if (pk === keys.addressBlock(companyId, number).pk) yield { ...item, createdAt: iso(NOW), updatedAt: iso(NOW) };
  };
  const rep = { ...caller, role: "sales" as const };
  const own = { ...context, table: { ...context.table, query } };
  return (await listAddresses(own, rep, { after: 0, limit: 1 })).addresses.length === 1;
}

/** Sends an outdated operation for each of two prospects. The results contain the current prospects, which have `bytes` bytes together. */
async function conflicts(bytes: number) {
  const { context, caller } = await company();
  const made = [await createProspect(context, caller, {}), await createProspect(context, caller, {})];
  const [first] = made;
  const stale = { type: "prospect.update", baseVersion: 99, fields: {} };
  const operations = made.map(({ id }) => ({ ...stale, opId: randomUUID(), id }));
  let [lengths, left] = [[1, 1], bytes];
  const get: ApiContext["table"]["get"] = async (key) => {
    const item = await context.table.get(key);
    if (item?.type !== "prospect") return item;
    return prospectItem({ ...storedProspect(item), name: letters(lengths[item.id === first?.id ? 0 : 1] ?? 0) });
  };
  const batch = { context: { ...context, table: { ...context.table, get } }, caller, requestId: "r" };
  const send = async () => (await applyBatch(batch, { deviceId: "d", operations })).results;
  for (const { record } of await send()) left -= answerBytes(JSON.stringify(record));
  lengths = [1 + Math.floor(left / 2), 1 + Math.ceil(left / 2)];
  return (await send()).map(({ outcome }) => outcome);
}

export const within = {
  idempotencyKeptMs: {
    is: async (ms) => {
      for (const holdsSecret of [false, true]) {
        const repeated = [await repeatedAfter(ms - 1, holdsSecret), await repeatedAfter(ms, holdsSecret)];
        expect(repeated).toEqual([true, false]);
      }
    },
  },
  idempotentRunMs: {
    is: async (ms) => {
      const { context, caller, now } = await company();
      const request = keyedPost("k");
      const begun = Promise.withResolvers<void>();
      // The first request never ends, like a request whose function was killed.
      void once(context, caller, request, {}, () => {
        begun.resolve();
        return new Promise(() => undefined);
      });
      await begun.promise;
      const accepts = () => succeeds(() => once(context, caller, request, {}, async () => 1));
      now.ms += ms - 1;
      expect(await accepts(), "one millisecond before the end").toBe(false);
      now.ms += 1;
      const another = { ...request, body: "another" };
      expect(await succeeds(() => once(context, caller, another, {}, async () => 1)), "another one").toBe(false);
      expect(await accepts(), "at the end").toBe(true);
    },
  },
  pastAssignments: {
    is: (most) => {
      const users = [most, most + 1].map((count) => knownUsers(Array.from({ length: count }, () => DAY_MS / 4)));
      expect(users.map(({ length }) => length)).toEqual([most, most]);
    },
  },
  newestAssignments: {
    is: (count) => {
      // The service forgets the shortest assignment, but none of the newest `count`. In this test, the newest `count` assignments are
      // short, and so is the one before them, which the service must therefore forget.
      const isShort = (i: number): boolean => i >= limits.pastAssignments - count;
      const known = knownUsers(
        Array.from({ length: limits.pastAssignments + 1 }, (_, i) => (isShort(i) ? 1_000 : 9_000)),
      );
      const all = Array.from({ length: limits.pastAssignments + 1 }, (_, i) => i + 1);
      expect(all.filter((user) => !known.includes(user))).toEqual([all.at(-count - 1)]);
    },
  },
  clockDifferenceMs: {
    is: (ms) => {
      const prospect = {
        assignedToUserId: 8,
        createdAt: iso(NOW - DAY_MS),
        pastAssignments: [NOW - DAY_MS, 7, DAY_MS],
      };
      const holders = [ms, ms + 1].map((late) =>
        holdersOf({ ...prospect, assignedAt: iso(NOW) }, { createdAt: iso(NOW + late), createdBy: null }, NOW),
      );
      expect(holders).toEqual([[8, 7], [8]]);
    },
  },
  bufferedAnswerBytes: {
    // The service reserves 16 KB for the rest of the response. In the JSON of the answer, the text has two more bytes, its quotes.
    most: (bytes) => succeeds(() => assertAnswerFits(letters(bytes - 16 * 1024 - 2))),
  },
  tagsPerCompany: {
    is: async (most) => {
      const { context, caller } = await company();
      const [first, second] = [context, context].map((one) => ({ ...one, table: { ...one.table } }));
      if (first === undefined || second === undefined) throw new Error("no function");
      const { id, ...tag } = await createTag(context, caller.companyId, { value: "first" });
      const others = Array.from({ length: most - 2 }, (_, i) => ({ ...tag, id: id + 1_000 + i, value: `v${i}` }));
      await context.table.batchPut(others.map((one) => ({ ...keys.tag(caller.companyId, one.id), ...one })));
      const made = [first, second].map((own, i) => createTag(own, caller.companyId, { value: `new ${i}` }));
      const ends = await Promise.allSettled(made);
      expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    },
  },
  fileLinkSeconds: {
    is: async (seconds) => {
      const { context, caller } = await company();
      const asked: number[] = [];
      const upload = (_: string, __: unknown, valid: number) => {
        asked.push(valid);
        return links.upload();
      };
      const { id } = await beginImport(context, { ...links, upload }, caller, {});
      const row = await context.table.get(keys.import(caller.companyId, id));
      expect([asked, row]).toMatchObject([[seconds], { upload: { untilMs: NOW + seconds * 1_000 } }]);
    },
  },
  dictionaryCacheMs: {
    is: async (ms) => {
      const { context, caller, now } = await company();
      const [warm, other] = [context, context].map((one) => ({ ...one, table: { ...one.table } }));
      if (warm === undefined || other === undefined) throw new Error("no function");
      const { version } = await freshDictionary(warm, caller.companyId);
      await createTag(other, caller.companyId, { value: "new" });
      const versions: number[] = [];
      for (const more of [ms - 1, ms]) {
        now.ms = NOW + more;
        versions.push((await recentDictionary(warm, caller.companyId)).version);
      }
      expect(versions).toEqual([version, version + 1]);
    },
  },
  secretOverlapMs: {
    is: async (ms) => {
      const { context, caller } = await company();
      const { id } = await createWebhook(context, caller.companyId, { name: "w", url: LOCAL, registrations: [] });
      await rotateSecret(context, caller.companyId, id, {});
      const row = await context.table.get(keys.webhook(caller.companyId, id));
      expect(row).toMatchObject({ previousSecret: { until: iso(NOW + ms) } });
      const secrets = { secretKey: "new", previousSecret: { secretKey: "old", until: iso(NOW + ms) } };
      expect(signatureHeaders(secrets, "dlv", "{}", NOW + ms - 1)).toHaveProperty("X-Service-Signature-Previous");
      const withoutOld = signatureHeaders({ secretKey: "new" }, "dlv", "{}", NOW + ms);
      expect(signatureHeaders(secrets, "dlv", "{}", NOW + ms)).toEqual(withoutOld);
    },
  },
  receiptKeptMs: {
    is: async (ms) => {
      for (const more of [0, 1]) {
        const { context, caller } = await company(NOW + more);
        const sent = { opId: randomUUID(), type: "prospect.create", clientRecordId: randomUUID(), fields: {} };
        await applyBatch({ context, caller, requestId: "r" }, { deviceId: "d", operations: [sent] });
        const row = await context.table.get(keys.receipt(caller.companyId, caller.userId, sent.opId));
        expect(row?.expiresAt).toBe(Math.ceil((NOW + more + ms) / 1_000));
      }
    },
  },
  operationResultBytes: {
    is: async (most) => {
      const found = [await conflicts(most), await conflicts(most + 1)];
      expect(found.map((outcomes) => outcomes.toSorted())).toEqual([
        ["conflict", "conflict"],
        ["conflict", "retry"],
      ]);
    },
  },
  activityBytes: {
    most: async (bytes) => {
      const { context, caller } = await company();
      const row = new Uint8Array(bytes);
      // The row is filled up with zeros to its size, because the decompression ignores the bytes after the end of the facts.
      row.set(encodeFacts([]));
      const days = activityKeys.allDays(caller.companyId).pk;
      const query: ApiContext["table"]["query"] = async function* (spec) {
        if (spec.pk === days) yield { sk: "F#2026-06-15#0#0", type: "dayFacts", version: 0, bytes: row };
        else yield* context.table.query(spec);
      };
      const range = ActivityQuery.parse({ from: iso(NOW), to: iso(NOW + 1), groupBy: "user" });
      const own = { ...context, table: { ...context.table, query } };
      return succeeds(() => activityReport(own, caller, range));
    },
  },
  addressesLookedThrough: {
    // The service searches whole blocks of ids, so the limit is rounded up to blocks.
    most: (count) => findsAddressIn(Math.ceil(count / keys.IDS_PER_PARTITION) - 1),
  },
  featureFault: {
    is: (most) => {
      const begin = "geometry: is a ";
      const end = ", and a territory is a Polygon";
      const details = [most, most + 1].map((length) => {
        const type = letters(length - begin.length - end.length);
        return readFeature({ type: "Feature", geometry: { type, coordinates: [] } }, { users: new Map() })[0].fault
          ?.detail;
      });
      const type = letters(most - begin.length - end.length);
      expect(details).toEqual([`${begin}${type}${end}`, `${begin}${type}a${end.slice(0, -2)}…`]);
    },
  },
  windowBodyBytes: {
    most: async (bytes) => {
      const { context, caller } = await company();
      const { companyId } = caller;
      const subscriber = { companyId, webhookId: 1, id: 1, delayMinutes: 1 };
      const matchOf = (recordId: number, version: number, dataBytes: number): Match => {
        const id = `${recordId}-${version}-prospect.updated`;
        const event = { id, event: "prospect.updated", companyId, recordId, version, createdAt: iso(NOW) };
        return { event: { ...event, data: { bytes: dataBytes, text: undefined } }, subscriber };
      };
      const opens = async (match: Match) => (await debounce(context.table, match, 1)) !== undefined;
      const withoutData = matchOf(1, 1, 0);
      await opens(withoutData);
      const eventBytes = Number((await context.table.get(windowKeyOf(withoutData)))?.bytes);
      // The body of the delivery has two events, and 1 000 bytes of other content.
      expect(await opens(matchOf(2, 1, bytes - 2 * eventBytes - 1_000))).toBe(true);
      return !(await opens(matchOf(2, 2, 0)));
    },
  },
  lookupMs: {
    is: async (ms) => {
      const cancel = vi.spyOn(Resolver.prototype, "cancel");
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const looking = createResolver({ servers: ["127.0.0.1:1"] })("a.test");
      const calls = [ms - 1, 1].map((more) => {
        vi.advanceTimersByTime(more);
        return cancel.mock.calls.length;
      });
      vi.useRealTimers();
      cancel.mockRestore();
      await expect(looking).rejects.toBeInstanceOf(LookupFailed);
      expect(calls).toEqual([0, 1]);
    },
  },
  answerBytes: {
    // The receiver closes the connection in the middle of its answer. The service accepts the answer if it has got this number of bytes.
    least: async (bytes) => {
      const begin = (response: ServerResponse) => void response.write(letters(bytes), () => response.socket?.end());
      const { status } = await send(await http(begin));
      return status === 200;
    },
  },
} as const satisfies Partial<Record<keyof typeof limits, Case>>;
