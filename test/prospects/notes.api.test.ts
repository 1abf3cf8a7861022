/** Tests notes over HTTP. Who may reach them is in the matrix of all routes (test/http/matrix.api.test.ts). */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Note } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const newProspect = async (client = as.rep): Promise<number> =>
  dataOf(await client.POST("/api/prospects", { body: {} }), 201).id;
const write = async (prospectId: number, body: string, client = as.rep) =>
  dataOf(await client.POST("/api/prospects/{id}/notes", { ...at(prospectId), body: { body } }), 201);

describe("a note", () => {
  test("belongs to the caller, and is read, changed and deleted at its Location", async () => {
    const prospectId = await newProspect();
    const answer = await as.admin.POST("/api/prospects/{id}/notes", {
      ...at(prospectId),
      body: { body: "Has a dog \u{1F415}" },
    });
    const made = dataOf(answer, 201);
    expect(made).toMatchObject({ body: "Has a dog \u{1F415}", createdBy: { email: as.admin.email } });
    expect(made.updatedAt).toBe(made.createdAt);
    const path = `/api/notes/${made.id}`;
    expect(answer.response.headers.get("location")).toBe(path);
    expect(dataOf(await as.rep.GET("/api/notes/{id}", at(made.id)))).toEqual(made);

    expect(dataOf(await as.rep.PATCH("/api/notes/{id}", { ...at(made.id), body: {} }))).toEqual(made);
    expect(dataOf(await as.rep.PATCH("/api/notes/{id}", { ...at(made.id), body: { body: made.body } }))).toEqual(made);
    const changed = dataOf(await as.rep.PATCH("/api/notes/{id}", { ...at(made.id), body: { body: "Two dogs" } }));
    expect(changed).toEqual({ ...made, body: "Two dogs", updatedAt: changed.updatedAt });
    expect(changed.updatedAt > made.updatedAt).toBe(true);
    expect(dataOf(await as.rep.GET("/api/notes/{id}", at(made.id)))).toEqual(changed);

    expect(dataOf(await as.rep.DELETE("/api/notes/{id}", at(made.id)))).toEqual({ id: made.id });
    problemOf(await as.rep.GET("/api/notes/{id}", at(made.id)), 404, "not_found");
    problemOf(await as.rep.DELETE("/api/notes/{id}", at(made.id)), 404, "not_found");
    problemOf(await as.rep.PATCH("/api/notes/{id}", { ...at(made.id), body: { body: "x" } }), 404, "not_found");
    expect(dataOf(await as.rep.GET("/api/prospects/{id}/notes", at(prospectId)))).toEqual([]);
    expect(dataOf(await as.rep.GET("/api/prospects/{id}", at(prospectId))).notes).toEqual([]);
  });

  test.each([{}, { body: "" }, { body: null }, { body: 7 }, { body: "x".repeat(10_001) }, { body: "\ud800" }])(
    "that is not 1 to 10 000 characters of text is refused (%#)",
    async (body) => {
      const faults = problemOf(
        await as.rep("POST", `/api/prospects/${await newProspect()}/notes`, body),
        400,
        "validation_failed",
      );
      expect(faults).toMatchObject([{ pointer: "/body" }]);
    },
  );

  test("of 10 000 characters is returned unchanged", async () => {
    const body = "\u{1F415}".repeat(10_000);
    const { id } = await write(await newProspect(), body);
    expect(dataOf(await as.rep.GET("/api/notes/{id}", at(id))).body).toBe(body);
  });
});

test("the list of notes has all notes, newest first; GET of the prospect has the five newest notes", async () => {
  const prospectId = await newProspect();
  const made: Note[] = [];
  for (let i = 0; i < 7; i++) made.push(await write(prospectId, `note ${i}`));
  const newestFirst = made.toReversed();
  expect(dataOf(await as.rep.GET("/api/prospects/{id}/notes", at(prospectId)))).toEqual(newestFirst);
  const detail = dataOf(await as.rep.GET("/api/prospects/{id}", at(prospectId)));
  expect(detail.notes).toEqual(newestFirst.slice(0, 5));
});

test("note.created contains the note and its prospect; changes of a note emit nothing", async () => {
  const receiver = await startReceiver();
  try {
    const name = uniqueName();
    const registrations = [{ event: "note.created", filter: { "prospect.name": name } }];
    const webhook = await as.admin.POST("/api/webhooks", { body: { name, url: receiver.url, registrations } });
    const { id: webhookId } = dataOf(webhook, 201);
    const prospect = dataOf(await as.rep.POST("/api/prospects", { body: { name } }), 201);
    const first = await write(prospect.id, "one");
    await as.rep.PATCH("/api/notes/{id}", { ...at(first.id), body: { body: "changed" } });
    await as.rep.DELETE("/api/notes/{id}", at(first.id));
    const second = await write(prospect.id, "two");
    await receiver.until(2);
    // The events are sorted by time. Ids cannot replace the time, because each function takes ids from its own block of 128 ids.
    const received = receiver.receipts.map(({ event }) => event.data).toSorted((a, b) => writtenMs(a) - writtenMs(b));
    expect(received).toEqual([
      { note: first, prospect },
      { note: second, prospect },
    ]);
    await as.admin.DELETE("/api/webhooks/{id}", at(webhookId));
  } finally {
    await receiver.close();
  }
});

const Received = z.object({ note: z.object({ createdAt: z.string() }) });
const writtenMs = (data: unknown): number => Date.parse(z.parse(Received, data).note.createdAt);
