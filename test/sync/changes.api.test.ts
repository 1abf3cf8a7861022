/** Tests `GET /api/changes` over HTTP: the snapshot, the changes after it, who gets which item, and the cursor. */
import { expect, test } from "vitest";
import { rowVersionOf } from "#shared/prospects/record-version.ts";
import type { ChangesPage, NewProspect } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { dataOf, present, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

interface Place {
  readonly cursor?: string;
  readonly limit?: number;
}

const pull = async (client: Client, place: Place): Promise<ChangesPage> =>
  dataOf(await client.GET("/api/changes", { params: { query: { types: "prospects", ...place } } }));

async function pullAll(client: Client, place: Place = {}): Promise<ChangesPage[]> {
  const pages = [await pull(client, place)];
  for (let last = pages[0]; last?.hasMore; last = pages.at(-1))
    pages.push(await pull(client, { ...place, cursor: last.cursor }));
  return pages;
}

const created = async (body: NewProspect): Promise<number> =>
  dataOf(await as.owner.POST("/api/prospects", { body }), 201).id;
const idOf = async (client: Client): Promise<number> => dataOf(await client.GET("/api/me")).user.id;
const change = async (id: number, body: { name: string } | { assignedToUserId: number }, client = as.owner) =>
  dataOf(await client.PATCH("/api/prospects/{id}", { ...at(id), body }));
const lastCursor = (pages: readonly ChangesPage[]): string => pages.at(-1)?.cursor ?? "";
const itemsOf = (pages: readonly ChangesPage[]) => pages.flatMap(({ items }) => items);

test("a snapshot contains each visible prospect as the list shows it, with the exact total on each page", async () => {
  const rep = await idOf(as.rep);
  for (let i = 0; i < 5; i++) await created({ name: `P${i}`, assignedToUserId: i % 2 === 0 ? rep : null });
  for (const [client, count] of [
    [as.owner, 5],
    [as.rep, 3],
    [as.rep2, 0],
  ] as const) {
    const pages = await pullAll(client, { limit: 2 });
    const snapshot = pages.filter(({ phase }) => phase === "snapshot");
    expect(snapshot.map(({ total }) => total)).toEqual(snapshot.map(() => count));
    const list = dataOf(await client.GET("/api/prospects"));
    const items = itemsOf(snapshot).map(({ data }) => data);
    expect(items).toEqual(list.items.toSorted((a, b) => a.id - b.id));
    expect(pages.every(({ cursor }) => cursor.length <= 512)).toBe(true);
  }
});

test("the changes contain what was created, changed, reassigned and deleted since, for each user", async () => {
  const [one = 0, two = 0, three = 0] = await Promise.all([as.rep, as.rep2, as.viewer].map(idOf));
  const [moved, kept, gone] = [
    await created({ name: "moved", assignedToUserId: one }),
    await created({ name: "kept", assignedToUserId: one }),
    await created({ name: "gone", assignedToUserId: one }),
  ];
  const cursors = new Map<Client, string>();
  for (const client of [as.owner, as.rep, as.rep2, as.viewer]) cursors.set(client, lastCursor(await pullAll(client)));
  for (const [client, cursor] of cursors)
    expect(await pull(client, { cursor })).toMatchObject({ items: [], hasMore: false });
  await change(moved, { assignedToUserId: two });
  await change(moved, { assignedToUserId: three });
  await change(kept, { name: "kept and renamed" }, as.rep);
  await as.owner.DELETE("/api/prospects/{id}", at(gone));
  // Returns the changes in a map, because their order is not known: a prospect that is created later can have a lower id.
  const changes = async (client: Client) =>
    new Map(
      itemsOf(await pullAll(client, { cursor: present(cursors.get(client)) })).map(({ id, op, reason, version }) => [
        id,
        [op, reason, rowVersionOf(version)],
      ]),
    );
  expect(await changes(as.rep)).toEqual(
    new Map([
      [moved, ["remove", "hidden", 3]],
      [kept, ["upsert", undefined, 2]],
      [gone, ["remove", "deleted", 2]],
    ]),
  );
  expect(await changes(as.rep2)).toEqual(new Map([[moved, ["remove", "hidden", 3]]]));
  const all = new Map([
    [moved, ["upsert", undefined, 3]],
    [kept, ["upsert", undefined, 2]],
    [gone, ["remove", "deleted", 2]],
  ]);
  expect(await changes(as.viewer)).toEqual(all);
  expect(await changes(as.owner)).toEqual(all);
});

test("a damaged or foreign cursor is 400", async () => {
  const cursor = lastCursor(await pullAll(as.viewer));
  const middle = Math.floor(cursor.length / 2);
  const damaged = `${cursor.slice(0, middle)}${cursor[middle] === "A" ? "B" : "A"}${cursor.slice(middle + 1)}`;
  const get = (client: Client, text: string) => client("GET", `/api/changes?cursor=${text}`);
  for (const [client, text] of [
    [as.viewer, damaged],
    [as.viewer, "x"],
    [as.viewer, ""],
    [as.viewer, "A".repeat(600)],
    ...["=", ".", "!", "%0A", "%C3%A9"].map((rubbish): [Client, string] => [as.viewer, cursor + rubbish]),
    [as.rep, cursor],
    [as.otherOwner, cursor],
  ] as const) {
    expect(problemOf(await get(client, text), 400, "validation_failed")).toMatchObject([{ parameter: "cursor" }]);
  }
});

test.each(["types=", "types=prospects,nothing", "limit=0", "limit=1001", "limit=x"])("?%s is 400", async (query) => {
  problemOf(await as.owner("GET", `/api/changes?${query}`), 400, "validation_failed");
});
