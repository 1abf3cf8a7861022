/** Notes over HTTP: who sees the prospect reads and writes them, nobody else learns that they exist. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { startReceiver } from "./receiver.ts";
import { bodyOf, Identified, ProspectBody, problemOf, uniqueName } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

const Note = z.object({
  id: z.number(),
  body: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
  createdBy: z.nullable(z.looseObject({ email: z.string() })),
});
const Detail = z.looseObject({ notes: z.array(Note) });

const newProspect = async (client = as.rep): Promise<number> =>
  bodyOf(await client("POST", "/api/prospects", {}), 201, ProspectBody).id;
const write = async (prospectId: number, body: string, client = as.rep) =>
  bodyOf(await client("POST", `/api/prospects/${prospectId}/notes`, { body }), 201, Note);

describe("a note", () => {
  test("is the caller's, stands where Location says, and is changed and deleted there", async () => {
    const prospectId = await newProspect();
    const answer = await as.admin("POST", `/api/prospects/${prospectId}/notes`, { body: "Has a dog \u{1F415}" });
    const made = bodyOf(answer, 201, Note);
    expect(made).toMatchObject({ body: "Has a dog \u{1F415}", createdBy: { email: as.admin.email } });
    expect(made.updatedAt).toBe(made.createdAt);
    const path = `/api/notes/${made.id}`;
    expect(answer.headers.get("location")).toBe(path);
    expect(bodyOf(await as.rep("GET", path), 200, Note)).toEqual(made);

    expect(bodyOf(await as.rep("PATCH", path, {}), 200, Note)).toEqual(made);
    expect(bodyOf(await as.rep("PATCH", path, { body: made.body }), 200, Note)).toEqual(made);
    const changed = bodyOf(await as.rep("PATCH", path, { body: "Two dogs" }), 200, Note);
    expect(changed).toEqual({ ...made, body: "Two dogs", updatedAt: changed.updatedAt });
    expect(changed.updatedAt > made.updatedAt).toBe(true);
    expect(bodyOf(await as.rep("GET", path), 200, Note)).toEqual(changed);

    expect(bodyOf(await as.rep("DELETE", path), 200, Identified)).toEqual({ id: made.id });
    for (const method of ["GET", "DELETE"]) problemOf(await as.rep(method, path), 404, "not_found");
    problemOf(await as.rep("PATCH", path, { body: "x" }), 404, "not_found");
    expect(bodyOf(await as.rep("GET", `/api/prospects/${prospectId}/notes`), 200, z.array(Note))).toEqual([]);
    expect(bodyOf(await as.rep("GET", `/api/prospects/${prospectId}`), 200, Detail).notes).toEqual([]);
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

  test("of 10 000 characters is given back as it came", async () => {
    const body = "\u{1F415}".repeat(10_000);
    const { id } = await write(await newProspect(), body);
    expect(bodyOf(await as.rep("GET", `/api/notes/${id}`), 200, Note).body).toBe(body);
  });

  test("is changed and deleted at once by many without a loss or a fault of ours", async () => {
    const { id } = await write(await newProspect(), "start");
    const texts = Array.from({ length: 10 }, (_, i) => `text ${i}`);
    const answers = await Promise.all(texts.map((body) => as.rep("PATCH", `/api/notes/${id}`, { body })));
    expect(answers.map(({ status }) => status)).toEqual(texts.map(() => 200));
    expect(texts).toContain(bodyOf(await as.rep("GET", `/api/notes/${id}`), 200, Note).body);
    const deletes = await Promise.all(texts.map(() => as.rep("DELETE", `/api/notes/${id}`)));
    expect(deletes.map(({ status }) => status).toSorted()).toEqual([200, ...texts.slice(1).map(() => 404)]);
  });
});

test("the list has all notes newest first, the detail the five newest", async () => {
  const prospectId = await newProspect();
  const made: z.infer<typeof Note>[] = [];
  for (let i = 0; i < 7; i++) made.push(await write(prospectId, `note ${i}`));
  const newestFirst = made.toReversed();
  expect(bodyOf(await as.rep("GET", `/api/prospects/${prospectId}/notes`), 200, z.array(Note))).toEqual(newestFirst);
  const detail = bodyOf(await as.rep("GET", `/api/prospects/${prospectId}`), 200, Detail);
  expect(detail.notes).toEqual(newestFirst.slice(0, 5));
});

test("who does not see the prospect does not see its notes, whatever they try", async () => {
  const prospectId = await newProspect();
  const { id } = await write(prospectId, "secret");
  const attempts = [
    ["GET", `/api/notes/${id}`],
    ["PATCH", `/api/notes/${id}`, { body: "mine" }],
    ["DELETE", `/api/notes/${id}`],
    ["GET", `/api/prospects/${prospectId}/notes`],
    ["POST", `/api/prospects/${prospectId}/notes`, { body: "mine" }],
  ] as const;
  for (const client of [as.rep2, as.otherOwner]) {
    for (const [method, path, body] of attempts) problemOf(await client(method, path, body), 404, "not_found");
  }
  expect(bodyOf(await as.viewer("GET", `/api/notes/${id}`), 200, Note).body).toBe("secret");
  problemOf(await as.rep("GET", `/api/appointments/${id}`), 404, "not_found");

  bodyOf(await as.rep("DELETE", `/api/prospects/${prospectId}`), 200, Identified);
  for (const [method, path, body] of attempts) problemOf(await as.owner(method, path, body), 404, "not_found");
});

test("note.created tells the note and its prospect; no change of a note does", async () => {
  const receiver = await startReceiver();
  try {
    const name = uniqueName();
    const registrations = [{ event: "note.created", filter: { "prospect.name": name } }];
    const webhook = await as.admin("POST", "/api/webhooks", { name, url: receiver.url, registrations });
    const { id: webhookId } = bodyOf(webhook, 201, Identified);
    const prospect = bodyOf(await as.rep("POST", "/api/prospects", { name }), 201, ProspectBody);
    const first = await write(prospect.id, "one");
    await as.rep("PATCH", `/api/notes/${first.id}`, { body: "changed" });
    await as.rep("DELETE", `/api/notes/${first.id}`);
    const second = await write(prospect.id, "two");
    await receiver.until(2);
    const told = receiver.receipts.map(({ event }) => event.data).toSorted((a, b) => noteId(a) - noteId(b));
    expect(told).toEqual([
      { note: first, prospect },
      { note: second, prospect },
    ]);
    await as.admin("DELETE", `/api/webhooks/${webhookId}`);
  } finally {
    await receiver.close();
  }
});

const noteId = (data: unknown): number => z.parse(z.looseObject({ note: Identified }), data).note.id;
