/**
 * Tests that the filter by the time of the last change finds the same prospects as a comparison with all rows, after any writes, flushes
 * and rebuilds.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { rebuild } from "#shared/company-index/repair/rebuild.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { ApiError } from "#shared/errors.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { readAllProspects } from "../harness/index-oracle.ts";
import {
  createAppointment,
  createNote,
  createProspect,
  createTag,
  deleteProspect,
  setTags,
  updateAddress,
  updateProspect,
} from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const clock = { ms: Date.parse("2030-01-01T00:00:00.000Z"), now: () => clock.ms };
const PLACE = { address1: "1 Pearl St", city: "Denver", state: "CO", zip: "80203" };

const Step = fc.record({ kind: fc.nat(11), seed: fc.nat(99), ms: fc.constantFrom(0, 1, 1_000, 86_400_000) });

test("finds exactly the prospects that were changed at the time or later, flushed or not", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(Step, { minLength: 20, maxLength: 30 }), async (steps) => {
      const [writer, reader] = [warmFunction(db, clock), warmFunction(db, clock)];
      const { caller, repId } = await newCompany(writer);
      const { companyId } = caller;
      const tag = await createTag(writer, companyId, { value: "Hail" });
      const made: { id: number; addressId: number }[] = [];
      const create = async (seed: number): Promise<void> => {
        const place = seed % 2 === 0 ? { lat: 39 + seed / 100, lng: -105 } : {};
        const { id, address } = await createProspect(writer, caller, { name: `n${seed}`, address: PLACE, ...place });
        made.push({ id, addressId: address?.id ?? 0 });
      };
      await create(0);
      for (const { kind, seed, ms } of steps) {
        clock.ms += ms;
        const { id, addressId } = made[seed % made.length] ?? { id: 0, addressId: 0 };
        const write = [
          () => create(seed),
          () => create(seed),
          () => updateProspect(writer, caller, id, { name: `${seed} ${clock.ms}` }),
          () => updateProspect(writer, caller, id, { assignedToUserId: seed % 3 === 0 ? repId : null }),
          () => updateAddress(writer, caller, addressId, { address1: `${seed} ${clock.ms}` }),
          () => setTags(writer, caller, id, { tagIds: seed % 3 === 0 ? [tag.id] : [] }),
          () => createNote(writer, caller, id, { body: "note" }),
          () =>
            createAppointment(writer, caller, id, {
              ...{ title: "t", startAt: new Date(clock.ms).toISOString(), endAt: null },
              ...{ allDay: false, location: null, notes: null },
            }),
          () => deleteProspect(writer, caller, id),
          () => flush(writer, companyId, { least: 1, settleMs: 0 }),
          () => flush(writer, companyId, { least: 1, settleMs: 0 }),
          () => rebuild(writer, indexRecords(writer.table), companyId, { settleMs: 0 }),
        ][kind];
        await write?.().catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
        });
      }
      const { prospects } = await readAllProspects(db.direct, companyId);
      const times = prospects.map(({ updatedAt }) => Date.parse(updatedAt));
      const since = new Set(times.flatMap((time) => [time, time + 1]));
      for (const time of since) {
        const updatedSince = new Date(time).toISOString();
        const expected = prospects.filter(({ updatedAt }) => Date.parse(updatedAt) >= time).map(({ id }) => id);
        const { items, total } = await listProspects(
          reader,
          caller,
          ListQuery.parse({ updatedSince, pageSize: "500" }),
        );
        expect(items.map(({ id }) => id).sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
        expect(total).toBe(expected.length);
        // The filter is combined with a bounding box. A prospect without coordinates is in no box.
        const filter = ProspectFilter.parse({ updatedSince, bbox: "-106,38,-104,41" });
        const onMap = prospects.filter(({ id, lat }) => lat !== null && expected.includes(id));
        expect((await findFiltered(reader, caller, filter)).matches.total).toBe(onMap.length);
      }
      expect((await verifyIndex(db.direct, indexRecords(db.direct), companyId)).faults).toEqual([]);
    }),
    { numRuns: 3, seed: 7, endOnFailure: true },
  );
});
