/** Territories over HTTP: all verbs, exact polygons, what is refused, races, and the events of their webhooks. */
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { demo, send, tokenOf } from "./client.ts";
import { startReceiver } from "./receiver.ts";
import { bodyOf, Identified, problemOf, uniqueName } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

const Territory = z.object({
  id: z.number(),
  name: z.string(),
  polygon: z.array(z.array(z.number())),
  totalProperties: z.number(),
  assignedToUserId: z.nullable(z.number()),
  companyId: z.number(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
const Users = z.array(z.object({ id: z.number(), email: z.string() }));

const square = [
  [-105, 39],
  [-104, 39],
  [-104, 40],
  [-105, 40],
  [-105, 39],
];

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function create(body: object = {}, client = as.rep): Promise<z.infer<typeof Territory>> {
  const made = bodyOf(await client("POST", "/api/territories", body), 201, Territory);
  cleanUps.push(() => client("DELETE", `/api/territories/${made.id}`));
  return made;
}

const userId = async (email: string, client = as.rep): Promise<number> =>
  bodyOf(await client("GET", "/api/users"), 200, Users).find((user) => user.email === email)?.id ?? 0;

describe("territories", () => {
  test("everything is optional when one is made", async () => {
    const answer = await as.rep("POST", "/api/territories", {});
    const made = bodyOf(answer, 201, Territory);
    expect(answer.headers.get("location")).toBe(`/api/territories/${made.id}`);
    expect(made).toMatchObject({ name: "Untitled Territory", polygon: [], totalProperties: 0, assignedToUserId: null });
    bodyOf(await as.rep("DELETE", `/api/territories/${made.id}`), 200, Identified);
  });

  test("are listed newest first, changed field by field, and gone after a delete", async () => {
    const rep2 = await userId(as.rep2.email);
    const name = uniqueName();
    const older = await create();
    const made = await create({
      name,
      polygon: square,
      totalProperties: 120,
      assignedToUserId: rep2,
      id: 1,
      companyId: 1,
    });
    expect(made).toMatchObject({ name, polygon: square, totalProperties: 120, assignedToUserId: rep2 });
    const path = `/api/territories/${made.id}`;
    expect(bodyOf(await as.rep2("GET", path), 200, Territory)).toEqual(made);
    const ids = bodyOf(await as.viewer("GET", "/api/territories"), 200, z.array(Territory)).map(({ id }) => id);
    expect(ids.filter((id) => [made.id, older.id].includes(id))).toEqual([made.id, older.id]);

    const renamed = bodyOf(await as.rep2("PATCH", path, { name: `${name}!` }), 200, Territory);
    expect(renamed).toEqual({ ...made, name: `${name}!`, updatedAt: renamed.updatedAt });
    const bare = bodyOf(await as.rep("PATCH", path, { assignedToUserId: null }), 200, Territory);
    expect(bare).toMatchObject({ assignedToUserId: null, polygon: square, name: `${name}!` });
    for (const body of [{}, { name: `${name}!`, polygon: square }]) {
      expect(bodyOf(await as.rep("PATCH", path, body), 200, Territory)).toEqual(bare);
    }

    expect(bodyOf(await as.importer("DELETE", path), 200, z.unknown())).toEqual({ id: made.id });
    for (const method of ["GET", "PATCH", "DELETE"]) problemOf(await as.rep(method, path, undefined), 404, "not_found");
    const left = bodyOf(await as.rep("GET", "/api/territories"), 200, z.array(Territory)).map(({ id }) => id);
    expect(left).not.toContain(made.id);
  });

  test("keep any polygon exactly as it was sent", async () => {
    const { id } = await create();
    const path = `/api/territories/${id}`;
    const within = (limit: number) =>
      fc
        .double({ min: -limit, max: limit, noNaN: true, noDefaultInfinity: true })
        .filter((value) => !Object.is(value, -0));
    const ring = fc.array(fc.tuple(within(180), within(90)), { minLength: 3, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(ring, async (polygon) => {
        expect(bodyOf(await as.rep("PATCH", path, { polygon }), 200, Territory).polygon).toEqual(polygon);
        expect(bodyOf(await as.rep("GET", path), 200, Territory).polygon).toEqual(polygon);
      }),
      { numRuns: 25 },
    );
    const largest = Array.from({ length: 5_000 }, (_, i) => [-104 - (i + 1) / 7_000.7, 39 + (i + 1) / 9_000.9]);
    expect((await create({ polygon: largest })).polygon).toEqual(largest);
  });

  test.each<[string, object]>([
    ["/polygon", { polygon: [] }],
    ["/polygon", { polygon: square.slice(0, 2) }],
    ["/polygon", { polygon: Array.from({ length: 5_001 }, () => [0, 0]) }],
    ["/polygon", { polygon: null }],
    ["/polygon", { polygon: "square" }],
    [
      "/polygon/1/0",
      {
        polygon: [
          [0, 0],
          [180.1, 0],
          [1, 1],
        ],
      },
    ],
    [
      "/polygon/2/1",
      {
        polygon: [
          [0, 0],
          [1, 0],
          [1, -90.5],
        ],
      },
    ],
    [
      "/polygon/0/1",
      {
        polygon: [
          [0, null],
          [1, 0],
          [1, 1],
        ],
      },
    ],
    [
      "/polygon/0/0",
      {
        polygon: [
          ["NaN", 0],
          [1, 0],
          [1, 1],
        ],
      },
    ],
    [
      "/polygon/0",
      {
        polygon: [
          [0, 0, 0],
          [1, 0],
          [1, 1],
        ],
      },
    ],
    ["/polygon/0", { polygon: [[0], [1, 0], [1, 1]] }],
    ["/totalProperties", { totalProperties: -1 }],
    ["/totalProperties", { totalProperties: 1.5 }],
    ["/totalProperties", { totalProperties: 2 ** 53 }],
    ["/name", { name: "x".repeat(256) }],
    ["/name", { name: null }],
    ["/assignedToUserId", { assignedToUserId: "1" }],
    ["/assignedToUserId", { assignedToUserId: 2 ** 50 }],
  ])("a fault at %s is told, case %#", async (pointer, body) => {
    const { id } = await create();
    for (const answer of [
      await as.rep("POST", "/api/territories", body),
      await as.rep("PATCH", `/api/territories/${id}`, body),
    ]) {
      expect(problemOf(answer, 400, "validation_failed").map((fault) => fault.pointer)).toContain(pointer);
    }
  });

  test("infinity in any spelling is refused", async () => {
    const { id } = await create();
    const polygon = JSON.stringify([
      [9, 0],
      [1, 0],
      [1, 1],
    ]);
    const headers = { Authorization: `Bearer ${await tokenOf(as.rep.email)}`, "Content-Type": "application/json" };
    for (const [spelling, code] of [
      ["1e999", "validation_failed"],
      ["NaN", "malformed_json"],
      ["Infinity", "malformed_json"],
    ] as const) {
      const body = `{"polygon":${polygon.replace("9", spelling)}}`;
      problemOf(await send("PATCH", `/api/territories/${id}`, { headers, body }), 400, code);
    }
  });

  test("another company's territory and user are none", async () => {
    const made = await create({ polygon: square });
    const path = `/api/territories/${made.id}`;
    for (const method of ["GET", "PATCH", "DELETE"]) {
      problemOf(await as.otherOwner(method, path, method === "PATCH" ? { name: "mine" } : undefined), 404, "not_found");
    }
    expect(
      bodyOf(await as.otherOwner("GET", "/api/territories"), 200, z.array(Territory)).map(({ id }) => id),
    ).not.toContain(made.id);
    const foreign = await userId(as.otherRep.email, as.otherOwner);
    const nobody = problemOf(await as.rep("PATCH", path, { assignedToUserId: 2 ** 50 }), 400, "validation_failed");
    expect(problemOf(await as.rep("PATCH", path, { assignedToUserId: foreign }), 400, "validation_failed")).toEqual(
      nobody,
    );
  });

  test("no change is lost when many come at once", async () => {
    const { id } = await create({ polygon: square });
    const path = `/api/territories/${id}`;
    const rep = await userId(as.rep.email);
    const changes = [{ name: "N" }, { totalProperties: 7 }, { polygon: square.slice(0, 3) }, { assignedToUserId: rep }];
    const answers = await Promise.all([...changes, ...changes, ...changes].map((body) => as.rep("PATCH", path, body)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(bodyOf(await as.rep("GET", path), 200, Territory)).toMatchObject(Object.assign({}, ...changes));
  });

  test("are told to webhooks when made, changed and deleted, and not when nothing changed", async () => {
    const receiver = await startReceiver();
    cleanUps.push(receiver.close);
    const registrations = ["created", "updated", "deleted"].map((verb) => ({ event: `territory.${verb}` }));
    const webhook = await as.otherOwner("POST", "/api/webhooks", { name: "T", url: receiver.url, registrations });
    const { id: webhookId } = bodyOf(webhook, 201, Identified);
    cleanUps.push(() => as.otherOwner("DELETE", `/api/webhooks/${webhookId}`));
    const made = bodyOf(await as.otherRep("POST", "/api/territories", { polygon: square }), 201, Territory);
    await as.otherRep("PATCH", `/api/territories/${made.id}`, {});
    await as.otherRep("PATCH", `/api/territories/${made.id}`, { name: "Second" });
    await as.otherRep("DELETE", `/api/territories/${made.id}`);
    await receiver.until(3);
    const told = new Map(receiver.receipts.map(({ event }) => [event.event, event.data.territory]));
    expect([...told.keys()].toSorted()).toEqual(["territory.created", "territory.deleted", "territory.updated"]);
    expect(told.get("territory.created")).toEqual(made);
    expect(told.get("territory.updated")).toMatchObject({ ...made, name: "Second", updatedAt: expect.any(String) });
    expect(told.get("territory.deleted")).toMatchObject({ id: made.id, polygon: square });
    expect(receiver.receipts).toHaveLength(3);
  });
});

test("each demo company has territories, some of them with a rep", async () => {
  for (const client of [demo.owner, demo.otherOwner]) {
    const territories = bodyOf(await client("GET", "/api/territories"), 200, z.array(Territory));
    const quarters = territories.filter(({ name }) => /(?:North|South) (?:East|West)$/.test(name));
    expect(quarters).toHaveLength(4);
    expect(quarters.filter(({ assignedToUserId }) => assignedToUserId !== null)).not.toHaveLength(0);
    for (const { polygon } of quarters) expect(polygon.at(0)).toEqual(polygon.at(-1));
  }
});
