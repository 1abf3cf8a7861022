/** Tests that devices which read `GET /api/changes` hold what the lists show, after writes of every type and changes of rights. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { Client } from "../harness/client.ts";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { type Item, List, Page } from "./feed-page.ts";

const idOf = async (client: Client): Promise<number> =>
  bodyOf(await client("GET", "/api/me"), 200, z.object({ user: Identified })).user.id;

/** A client that keeps, for each type and id, the item with the highest version. */
class Device {
  readonly #client: Client;
  readonly #copies = new Map<string, Item>();
  #cursor: string | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Reads page after page until the last one, and returns the new items. */
  async sync(): Promise<Item[]> {
    const all: Item[] = [];
    for (;;) {
      const query = this.#cursor === undefined ? "?limit=100" : `?limit=100&cursor=${this.#cursor}`;
      const page = await bodyOf(await this.#client("GET", `/api/changes${query}`), 200, Page);
      for (const item of page.items) {
        const key = `${item.type}/${item.id}`;
        if (item.version >= (this.#copies.get(key)?.version ?? 0)) this.#copies.set(key, item);
      }
      all.push(...page.items);
      this.#cursor = page.cursor;
      if (!page.hasMore) return all;
    }
  }

  data(type: string): unknown[] {
    return [...this.#copies.values()]
      .filter((item) => item.type === type && item.op === "upsert")
      .sort((a, b) => a.id - b.id)
      .map(({ data }) => data);
  }
}

/** Expects that the copies of the device equal the lists of the API. */
async function expectLists(client: Client, device: Device): Promise<void> {
  const sortedById = (items: readonly { readonly id: number }[]) => items.toSorted((a, b) => a.id - b.id);
  const Items = z.array(z.looseObject({ id: z.number() }));
  const listed = async (path: string) => sortedById(bodyOf(await client("GET", path), 200, Items));
  const { items: prospects } = bodyOf(await client("GET", "/api/prospects?pageSize=200"), 200, List);
  expect(device.data("prospects")).toEqual(sortedById(prospects));
  const notes = await Promise.all(prospects.map(({ id }) => listed(`/api/prospects/${id}/notes`)));
  expect(device.data("notes")).toEqual(sortedById(notes.flat()));
  expect(device.data("appointments")).toEqual(await listed("/api/appointments?from=2030-01-01&to=2030-12-31"));
  for (const type of ["territories", "statuses", "tags", "users"]) {
    expect(device.data(type)).toEqual(await listed(`/api/${type}`));
  }
}

test("devices hold what the lists show of every type, after writes, renames, deletions and reassignments", async () => {
  const team = await newTeam();
  const devices = [team.owner, team.rep, team.rep2, team.viewer].map((client) => ({
    client,
    device: new Device(client),
  }));
  const post = async (path: string, body: object) => bodyOf(await team.owner("POST", path, body), 201, Identified).id;
  const patch = async (path: string, body: object) => expect((await team.owner("PATCH", path, body)).status).toBe(200);
  const remove = async (path: string) => expect((await team.owner("DELETE", path)).status).toBeLessThan(300);
  const check = async (): Promise<void> => {
    for (const { client, device } of devices) {
      await device.sync();
      await expectLists(client, device);
      expect(await device.sync()).toEqual([]);
    }
  };
  const [rep, rep2] = [await idOf(team.rep), await idOf(team.rep2)];
  const status = await post("/api/statuses", { value: "Hot" });
  const tag = await post("/api/tags", { value: "Roof" });
  const ids: number[] = [];
  for (const assignedToUserId of [rep, rep2, null]) {
    const id = await post("/api/prospects", { name: "Ann", assignedToUserId, currentStatusId: status });
    ids.push(id);
    await post(`/api/prospects/${id}/notes`, { body: "First" });
    await post(`/api/prospects/${id}/appointments`, {
      title: "Call",
      startAt: "2030-05-01T10:00:00Z",
      assignedToUserId: rep,
    });
    expect((await team.owner("PUT", `/api/prospects/${id}/tags`, { tagIds: [tag] })).status).toBe(200);
  }
  const territory = await post("/api/territories", { name: "North" });
  await check();
  const [first = 0] = ids;
  const note = await post(`/api/prospects/${first}/notes`, { body: "Second" });
  const appointment = await post(`/api/prospects/${first}/appointments`, {
    title: "Visit",
    startAt: "2030-04-01T10:00:00Z",
  });
  await patch(`/api/territories/${territory}`, { name: "South" });
  await check();
  await patch(`/api/statuses/${status}`, { value: "Warm" });
  await patch(`/api/users/${rep}`, { firstName: "Renamed" });
  await check();
  await patch(`/api/prospects/${first}`, { assignedToUserId: rep2 });
  await remove(`/api/tags/${tag}`);
  await patch(`/api/notes/${note}`, { body: "Edited" });
  await check();
  await remove(`/api/notes/${note}`);
  await patch(`/api/prospects/${first}`, { assignedToUserId: rep });
  await patch(`/api/appointments/${appointment}`, { status: "cancelled" });
  await check();
  await remove(`/api/appointments/${appointment}`);
  await remove(`/api/prospects/${ids[1]}`);
  await remove(`/api/territories/${territory}`);
  await remove(`/api/statuses/${status}`);
  await check();
});
