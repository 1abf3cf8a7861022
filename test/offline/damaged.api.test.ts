/** Tests that a phone whose store was damaged notices it by the checksums of the running service, for each type that has one. */
import { expect, test } from "vitest";
import { checkedTypes } from "../../docs/client/checksum.ts";
import type { Store } from "../../docs/client/store.ts";
import { at, baseUrl, tokenOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { listsOf, recordsOf } from "./lists.ts";
import { Phone } from "./phone.ts";

const as = await newTeam();
const DAY_MS = 86_400_000;

/** Removes one record of each type, and replaces another one by an older version. */
async function damage(store: Store, types: typeof checkedTypes): Promise<void> {
  const { generation } = await store.state();
  for (const type of types) {
    const [lost = expect.fail(), old] = await store.records(type);
    const remove = [lost, ...(old === undefined ? [] : [old])].map((record) => ({ ...record, generation }));
    await store.commit({ remove });
    if (old !== undefined) await store.commit({ put: [{ ...old, version: old.version - 2 ** 24 }] });
  }
}

test("a phone whose records were damaged notices it, and an undamaged one never begins anew", async () => {
  for (const name of ["Ann", "Bob", "Eve"]) {
    const { id } = dataOf(await as.owner.POST("/api/prospects", { body: { name } }), 201);
    const visit = { title: "Visit", startAt: new Date(Date.now() + 90 * DAY_MS).toISOString() };
    await as.owner.POST("/api/prospects/{id}/appointments", { ...at(id), body: visit });
    dataOf(await as.owner.POST("/api/territories", { body: { name } }), 201);
    const tag = dataOf(await as.owner.POST("/api/tags", { body: { value: name } }), 201);
    dataOf(await as.owner.PUT("/api/prospects/{id}/tags", { ...at(id), body: { tagIds: [tag.id] } }));
    await as.owner.PATCH("/api/tags/{id}", { ...at(tag.id), body: { value: `${name} again` } });
  }
  let days = 0;
  const now = (): number => Date.now() + days * DAY_MS;
  const phone = new Phone({ baseUrl: baseUrl(), accessToken: () => tokenOf(as.owner.email), now, pageLimit: 5 });
  const generationAfterSync = async (): Promise<number> => {
    days++;
    expect(await phone.open().sync()).toBe("synced");
    expect(await recordsOf(phone.store)).toEqual(await listsOf(as.owner));
    return (await phone.store.state()).generation;
  };
  expect([await generationAfterSync(), await generationAfterSync()]).toEqual([0, 0]);
  for (const [i, type] of checkedTypes.entries()) {
    await damage(phone.store, [type]);
    expect(await generationAfterSync(), type).toBe(i + 1);
  }
  expect(await generationAfterSync()).toBe(checkedTypes.length);
});
