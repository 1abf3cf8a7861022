/** Reads what the API's lists show to a user. Tests compare the result with the store of the user's phone. */
import type { Prospect } from "../../docs/client/api.ts";
import type { Store } from "../../docs/client/store.ts";
import { at, type Client } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";

const PAGE_SIZE = 100;
const DAY_MS = 86_400_000;

const byId = <T extends { readonly id: number }>(items: readonly T[]): T[] => items.toSorted((a, b) => a.id - b.id);

/** Returns all prospects that the user sees, in the order of their ids. */
export async function prospectsOf(client: Client): Promise<Prospect[]> {
  const all: Prospect[] = [];
  for (let page = 1; ; page++) {
    const { items } = dataOf(await client.GET("/api/prospects", { params: { query: { page, pageSize: PAGE_SIZE } } }));
    all.push(...items);
    if (items.length < PAGE_SIZE) return byId(all);
  }
}

/** Returns all lists of the user, with the appointments of 180 days before and after. */
export async function listsOf(client: Client) {
  const near = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();
  const query = { from: near(-180), to: near(180) };
  const [prospects, appointments, territories, statuses, tags, users] = await Promise.all([
    prospectsOf(client),
    client.GET("/api/appointments", { params: { query } }).then(dataOf).then(byId),
    client.GET("/api/territories").then(dataOf).then(byId),
    client.GET("/api/statuses").then(dataOf).then(byId),
    client.GET("/api/tags").then(dataOf).then(byId),
    client.GET("/api/users").then(dataOf).then(byId),
  ]);
  const notes = await Promise.all(
    prospects.map(async ({ id }) => dataOf(await client.GET("/api/prospects/{id}/notes", at(id)))),
  );
  return { prospects, notes: byId(notes.flat()), appointments, territories, statuses, tags, users };
}

/** Returns the records in the phone's store in the same form as `listsOf`, so that a test can compare both. */
export async function recordsOf({ records }: Store) {
  const dataIn = async <Data extends { readonly id: number }>(stored: Promise<readonly { readonly data: Data }[]>) =>
    byId((await stored).map(({ data }) => data));
  return {
    prospects: await dataIn(records("prospects")),
    notes: await dataIn(records("notes")),
    appointments: await dataIn(records("appointments")),
    territories: await dataIn(records("territories")),
    statuses: await dataIn(records("statuses")),
    tags: await dataIn(records("tags")),
    users: await dataIn(records("users")),
  };
}
