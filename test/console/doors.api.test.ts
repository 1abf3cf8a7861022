/** Tests that the field mode shows, without a connection, what the service will show when it has applied the waiting changes. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { confirmedDoors, type Door, Records, targetOf, withOutbox } from "../../console/src/field/door.ts";
import { apiClient } from "../../docs/client/client.ts";
import { type NewOperation, offlineClient } from "../../docs/client/offline.ts";
import { memoryStore } from "../../docs/client/store.ts";
import { baseUrl, tokenOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const api = apiClient({ baseUrl: baseUrl(), accessToken: () => tokenOf(as.rep.email) });

const text = fc.constantFrom("Ann", "Bob", null);
const address = fc.record({
  address1: fc.constantFrom("12 Elm St", "7b Oak Ave, Apt 3", "Village Green"),
  address2: fc.constantFrom(null, "Unit 9"),
  city: fc.constant("Denver"),
  state: fc.constant("CO"),
  zip: fc.constant("80207"),
});
const fields = fc.record(
  { name: text, phoneNumber: text, address, lat: fc.constant(39.75), lng: fc.constantFrom(-104.9, -104.8) },
  { requiredKeys: ["lat", "lng"] },
);
const someOf = (ids: readonly number[]) => fc.subarray([...ids]);

/** `door` modulo the number of doors is the index of the door that the operation changes. */
interface Act {
  readonly door: number;
  readonly operation: Pick<NewOperation, "type" | "fields"> & { readonly appointment?: number };
}

const actsOn = (statuses: readonly number[], tags: readonly number[]) => {
  const operation = fc.oneof(
    fields.map((changed) => ({ type: "prospect.create", fields: changed }) as const),
    fields.map((changed) => ({ type: "prospect.update", fields: changed }) as const),
    fc
      .constantFrom(...statuses, null)
      .map((id) => ({ type: "prospect.update", fields: { currentStatusId: id } }) as const),
    someOf(tags).map((tagIds) => ({ type: "prospect.tags", fields: { tagIds } }) as const),
    fc.constantFrom("One", "Two").map((body) => ({ type: "note.create", fields: { body } }) as const),
    fc
      .constantFrom("2030-05-06T10:00:00.000Z", "2030-05-05T10:00:00.000Z")
      .map((startAt) => ({ type: "appointment.create", fields: { title: "Visit", startAt } }) as const),
    fc
      .record({ startAt: fc.constant("2031-01-01T10:00:00.000Z"), status: fc.constantFrom("cancelled", "scheduled") })
      .map((changed) => ({ type: "appointment.update", fields: changed, appointment: 0 }) as const),
  );
  return fc.array(fc.record({ door: fc.nat(9), operation }), { minLength: 1, maxLength: 8 }) satisfies fc.Arbitrary<
    Act[]
  >;
};

/** Returns the doors without the values that only the service decides, and with their lists in a fixed order. */
const shownOf = (doors: Iterable<Door>) =>
  [...doors].map(({ id: _, version: __, pending: ___, notes, appointments, address: place, tags, ...door }) => ({
    ...door,
    address: place === null ? null : [place.address1, place.address2, place.city, place.state, place.zip],
    tags: [...tags].sort(),
    notes: notes.map(({ body }) => body).sort(),
    // Appointments at the same time may have any order.
    appointments: appointments.map(({ title, startAt, status }) => `${startAt} ${title} ${status}`).sort(),
  }));

test("what the field mode shows before a sync is what it shows after the sync", async () => {
  const statuses = dataOf(await as.admin.GET("/api/statuses"));
  const tags = [];
  for (const value of ["Dog", "Gate"]) tags.push(dataOf(await as.admin.POST("/api/tags", { body: { value } }), 201).id);
  const known = new Map(statuses.map((status) => [status.id, status]));
  const store = memoryStore();
  const phone = offlineClient({ api, store });
  const look = async (): Promise<ReadonlyMap<string, Door>> => {
    const records = new Records();
    for (const type of ["prospects", "notes", "appointments"] as const) {
      for (const record of await store.records(type)) records.all.set(`${type}/${record.id}`, record);
    }
    return withOutbox(confirmedDoors(records), await store.outbox(), known);
  };
  const add = async ({ door, operation: { appointment, ...operation } }: Act): Promise<void> => {
    const doors = [...(await look()).values()];
    const target = doors[door % Math.max(1, doors.length)];
    if (operation.type === "prospect.create" || target === undefined) {
      await phone.add({ type: "prospect.create", clientRecordId: crypto.randomUUID(), fields: operation.fields ?? {} });
    } else if (appointment === undefined) await phone.add({ ...operation, ...targetOf(target) });
    else {
      const id = target.appointments.find((one) => one.id !== undefined)?.id;
      if (id !== undefined) await phone.add({ ...operation, id });
    }
  };
  await fc.assert(
    fc.asyncProperty(actsOn([...known.keys()], tags), async (acts) => {
      for (const act of acts) await add(act);
      const before = shownOf((await look()).values());
      // A busy service may refuse several attempts in a row, so the phone syncs until an attempt succeeds.
      await expect.poll(() => phone.sync()).toBe("synced");
      expect(await store.outbox()).toEqual([]);
      const after = await look();
      const inOrder = before.map(({ key }) => after.get(key)).filter((door) => door !== undefined);
      expect(shownOf(inOrder)).toEqual(before);
      expect(after.size).toBe(before.length);
    }),
    { numRuns: 20 },
  );
});
