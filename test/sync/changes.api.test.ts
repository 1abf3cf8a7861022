/** Tests `GET /api/changes` over HTTP: the snapshot, the changes after it, who gets which item, and the cursor. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { rowVersionOf } from "#shared/prospects/record-version.ts";
import type { Client } from "../harness/client.ts";
import { bodyOf, Identified, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const Item = z.looseObject({
  type: z.string(),
  id: z.number(),
  version: z.number(),
  op: z.enum(["upsert", "remove"]),
  reason: z.optional(z.string()),
  data: z.optional(z.unknown()),
});
const Page = z.object({
  phase: z.string(),
  items: z.array(Item),
  cursor: z.string(),
  hasMore: z.boolean(),
  total: z.optional(z.int()),
});
type Page = z.infer<typeof Page>;
const List = z.object({ items: z.array(z.looseObject({ id: z.number() })), total: z.int() });

const pull = async (client: Client, cursor?: string, more = ""): Promise<Page> => {
  const query = `?types=prospects${cursor === undefined ? "" : `&cursor=${cursor}`}${more}`;
  return bodyOf(await client("GET", `/api/changes${query}`), 200, Page);
};

async function pullAll(client: Client, cursor?: string, more = ""): Promise<Page[]> {
  const pages: Page[] = [];
  for (let next = cursor; pages.at(-1)?.hasMore !== false; next = pages.at(-1)?.cursor)
    pages.push(await pull(client, next, more));
  return pages;
}

const created = async (body: object, client = as.owner): Promise<number> =>
  bodyOf(await client("POST", "/api/prospects", body), 201, Identified).id;
const idOf = async (client: Client): Promise<number> =>
  bodyOf(await client("GET", "/api/me"), 200, z.object({ user: Identified })).user.id;
const assign = (id: number, assignedToUserId: number) =>
  as.owner("PATCH", `/api/prospects/${id}`, { assignedToUserId });
const lastCursor = (pages: readonly Page[]): string => pages.at(-1)?.cursor ?? "";
const itemsOf = (pages: readonly Page[]) => pages.flatMap(({ items }) => items);

test("a snapshot contains each visible prospect as the list shows it, with the exact total on each page", async () => {
  const rep = await idOf(as.rep);
  for (let i = 0; i < 5; i++) await created({ name: `P${i}`, assignedToUserId: i % 2 === 0 ? rep : null });
  for (const [client, count] of [
    [as.owner, 5],
    [as.rep, 3],
    [as.rep2, 0],
  ] as const) {
    const pages = await pullAll(client, undefined, "&limit=2");
    const snapshot = pages.filter(({ phase }) => phase === "snapshot");
    expect(snapshot.map(({ total }) => total)).toEqual(snapshot.map(() => count));
    const list = bodyOf(await client("GET", "/api/prospects"), 200, List);
    const items = itemsOf(snapshot).map(({ data }) => data);
    expect(items).toEqual(list.items.toSorted((a, b) => a.id - b.id));
    expect(pages.every(({ cursor }) => cursor.length <= 512)).toBe(true);
  }
});

test("the changes contain what was created, changed, reassigned and deleted since, for each user", async () => {
  const [one, two, three] = await Promise.all([as.rep, as.rep2, as.viewer].map(idOf));
  const [moved, kept, gone] = [
    await created({ name: "moved", assignedToUserId: one }),
    await created({ name: "kept", assignedToUserId: one }),
    await created({ name: "gone", assignedToUserId: one }),
  ];
  const cursors = new Map<Client, string>();
  for (const client of [as.owner, as.rep, as.rep2, as.viewer]) cursors.set(client, lastCursor(await pullAll(client)));
  for (const [client, cursor] of cursors)
    expect(await pull(client, cursor)).toMatchObject({ items: [], hasMore: false });
  await assign(moved, two ?? 0);
  await assign(moved, three ?? 0);
  await as.rep("PATCH", `/api/prospects/${kept}`, { name: "kept and renamed" });
  await as.owner("DELETE", `/api/prospects/${gone}`);
  // Returns the changes in a map, because their order is not known: a prospect that is created later can have a lower id.
  const changes = async (client: Client) =>
    new Map(
      itemsOf(await pullAll(client, cursors.get(client))).map(({ id, op, reason, version }) => [
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
