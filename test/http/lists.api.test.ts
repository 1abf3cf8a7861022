/** Tests that no answer shows a deleted record, and that the pages of a list together have each record exactly once. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { csvForm } from "../harness/csv-form.ts";
import { bodyOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const made = async (path: string, body: object = {}, client = as.owner): Promise<number> =>
  bodyOf(await client("POST", path, body), 201, Identified).id;
const soon = new Date(Date.now() + 3_600_000).toISOString();
const url = "http://127.0.0.1:9/";

type Shown = readonly [read: string, sign: string | number];
const each = (sign: string | number, ...reads: readonly string[]): Shown[] => reads.map((read) => [read, sign]);

interface Gone {
  readonly path: string;
  /** A valid body for a PATCH of the record. */
  readonly patch?: object;
  /** Requests that succeed before and after the deletion, each with a text or id that the answer may contain only before it. */
  readonly shown: readonly Shown[];
  /** Paths of records that the DELETE also deletes. A GET of each must answer 404 after it. */
  readonly alongside?: readonly string[];
  readonly hasNoGet?: true;
}

async function prospect() {
  const name = uniqueName();
  const id = await made("/api/prospects", { name, lat: 11.25, lng: 12.5 });
  const path = `/api/prospects/${id}`;
  const [note, title] = [uniqueName(), uniqueName()];
  const noteId = await made(`${path}/notes`, { body: note });
  const appointmentId = await made(`${path}/appointments`, { title, startAt: soon });
  return { name, id, path, note, title, noteId, appointmentId };
}

const kinds: Readonly<Record<string, () => Promise<Gone>>> = {
  prospect: async () => {
    const { name, id, path, note, title, noteId, appointmentId } = await prospect();
    const [aNote, anAppointment] = [`/api/notes/${noteId}`, `/api/appointments/${appointmentId}`];
    const queries = ["", `?search=${name}`, `?search=${note}`, "?bbox=12,11,13,12"];
    return {
      path,
      patch: { name: "x" },
      shown: [
        ...each(name, ...queries.map((query) => `/api/prospects${query}`)),
        ...each(id, "/api/prospects/pins"),
        ...each(title, "/api/appointments"),
      ],
      alongside: [aNote, anAppointment, `${path}/notes`],
    };
  },
  note: async () => {
    const { name, path, note, noteId } = await prospect();
    const shown = [...each(note, path, `${path}/notes`), ...each(name, `/api/prospects?search=${note}`)];
    return { path: `/api/notes/${noteId}`, patch: { body: "x" }, shown };
  },
  appointment: async () => {
    const { path, title, appointmentId } = await prospect();
    const shown = each(title, path, "/api/prospects", "/api/appointments");
    return { path: `/api/appointments/${appointmentId}`, patch: { title: "x" }, shown };
  },
  territory: async () => {
    const name = uniqueName();
    const id = await made("/api/territories", { name });
    return { path: `/api/territories/${id}`, patch: { name: "x" }, shown: each(name, "/api/territories") };
  },
  tag: async () => {
    const value = uniqueName();
    const [id, { path, name }] = [await made("/api/tags", { value }), await prospect()];
    bodyOf(await as.owner("PUT", `${path}/tags`, { tagIds: [id] }), 200, z.unknown());
    const shown = [...each(value, "/api/tags", path, "/api/prospects"), ...each(name, `/api/prospects?tagId=${value}`)];
    return { path: `/api/tags/${id}`, patch: { value: "x" }, shown };
  },
  webhook: async () => {
    const name = uniqueName();
    const id = await made("/api/webhooks", { name, url });
    const path = `/api/webhooks/${id}`;
    return { path, shown: each(name, "/api/webhooks"), alongside: [`${path}/registrations`] };
  },
  registration: async () => {
    const [webhook, event] = [`/api/webhooks/${await made("/api/webhooks", { name: "W", url })}`, uniqueName()];
    const id = await made(`${webhook}/registrations`, { event });
    const shown = each(event, "/api/webhooks", webhook, `${webhook}/registrations`);
    return { path: `${webhook}/registrations/${id}`, shown, hasNoGet: true };
  },
};

describe("a deleted record is gone from every read and write at once", () => {
  test.each(Object.entries(kinds))("%s", async (_, make) => {
    const { path, patch, shown, alongside = [], hasNoGet } = await make();
    const shows = async ([read, sign]: Shown): Promise<boolean> => {
      const { status, text } = await as.owner("GET", read);
      expect(status, text).toBe(200);
      return typeof sign === "string" ? text.includes(sign) : new RegExp(`:${sign}[,}]`).test(text);
    };
    for (const entry of shown) expect(await shows(entry), entry[0]).toBe(true);
    expect(bodyOf(await as.owner("DELETE", path), 200, Identified).id).toBe(Number(path.split("/").at(-1)));
    for (const entry of shown) expect(await shows(entry), entry[0]).toBe(false);
    for (const read of hasNoGet ? alongside : [path, ...alongside]) {
      problemOf(await as.owner("GET", read), 404, "not_found");
    }
    if (patch !== undefined) {
      for (const body of [patch, {}]) problemOf(await as.owner("PATCH", path, body), 404, "not_found");
    }
    problemOf(await as.owner("DELETE", path), 404, "not_found");
  });
});

describe("pages visit each record once", () => {
  const COUNT = 9;
  const sizes = [1, 4, COUNT - 1, COUNT, COUNT + 1, 500];

  test("prospects, for every page size, in the order of the whole list", async () => {
    const client = as.otherOwner;
    for (let i = 0; i < COUNT; i++) await made("/api/prospects", { name: `${i}` }, client);
    const Page = z.object({ items: z.array(Identified), total: z.number() });
    const read = async (query: string) => bodyOf(await client("GET", `/api/prospects?${query}`), 200, Page);
    const whole = (await read("")).items;
    expect(whole).toHaveLength(COUNT);
    for (const size of sizes) {
      const visited: unknown[] = [];
      const pages = Math.ceil(COUNT / size);
      for (let page = 1; page <= pages + 1; page++) {
        const { items, total } = await read(`page=${page}&pageSize=${size}`);
        expect(total).toBe(COUNT);
        expect(items).toHaveLength(page < pages ? size : page === pages ? COUNT - size * (pages - 1) : 0);
        visited.push(...items);
      }
      expect(visited, `pages of ${size}`).toEqual(whole);
    }
  });

  test("addresses, for every limit, over several blocks of 128 ids", async () => {
    const client = as.otherOwner;
    // An import takes ids from other blocks of 128 ids than single requests.
    const IMPORTED = 4;
    const rows = Array.from({ length: IMPORTED }, (_, i) => `1 Main St,Denver,CO,${i}`);
    const form = csvForm(["address1,city,state,zip", ...rows].join("\n"));
    const imported = await client.send("POST", "/api/prospects/import", { body: form });
    expect(imported.body).toMatchObject({ imported: IMPORTED });
    const WithAddress = z.object({ items: z.array(z.object({ address: z.nullable(Identified) })) });
    const { items } = bodyOf(await client("GET", "/api/prospects?pageSize=500"), 200, WithAddress);
    const ids = items.flatMap(({ address }) => (address === null ? [] : [address.id]));
    expect(ids).toHaveLength(IMPORTED);
    const home = { address1: "1 Main St", city: "Denver", state: "CO" };
    while (ids.length < COUNT) ids.push(await made("/api/addresses", { ...home, zip: `${ids.length}` }, client));
    ids.sort((a, b) => a - b);
    expect(Math.floor((ids.at(0) ?? 0) / 128)).not.toBe(Math.floor((ids.at(-1) ?? 0) / 128));
    for (const size of sizes) {
      const visited: number[] = [];
      for (let more = true, after = 0; more; after = visited.at(-1) ?? 0) {
        const answer = await client("GET", `/api/addresses?limit=${size}&after=${after}`);
        const page = bodyOf(answer, 200, z.array(Identified)).map(({ id }) => id);
        visited.push(...page);
        more = page.length === size && visited.length <= COUNT;
      }
      expect(visited, `pages of ${size}`).toEqual(ids);
    }
  });
});
