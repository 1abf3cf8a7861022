/** Tests that no answer shows a deleted record. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const made = async (path: string, body: object): Promise<number> =>
  bodyOf(await as.owner("POST", path, body), 201, Identified).id;
const soon = new Date(Date.now() + 3_600_000).toISOString();
const url = "http://127.0.0.1:9/";

type Shown = readonly [read: string, sign: string | number];
const each = (sign: string | number, ...reads: readonly string[]): Shown[] => reads.map((read) => [read, sign]);

interface Gone {
  readonly path: string;
  /** A valid body for a PATCH of the record. */
  readonly patch?: object;
  /** Requests that succeed before and after the deletion. Only the answers before the deletion may have the text or id of the record. */
  readonly shown: readonly Shown[];
  /** Paths of records that the DELETE also deletes. A GET of each path must answer 404 afterwards. */
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

test.each(Object.entries(kinds))("a deleted %s is gone from every read and write at once", async (_, make) => {
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
