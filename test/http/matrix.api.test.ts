/** Tests every route with every kind of caller, and that no answer reveals the existence of a record that the caller may not see. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { routes } from "../../infra/routes/routes.ts";
import type { Answer } from "../harness/client.ts";
import { bodyOf, Identified, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { sized } from "../harness/tier.ts";
import {
  ask,
  type Company,
  leaks,
  marker,
  newStage,
  pathOf,
  type Records,
  type Stage,
  userOf,
} from "./matrix-stage.ts";
import { bodyFor, type CallerName, callers, formFor, type Row, rows } from "./matrix-table.ts";

const Me = z.object({ user: Identified, company: Identified });
const meOf = async (email: string) => bodyOf(await ask(email, "GET", "/api/me"), 200, Me);
const userIdOf = async (email: string): Promise<number> => (await meOf(email)).user.id;

/** Registers marks of the company and its users. The users' names are no marks, because both companies have users with the same names. */
async function markTeam(company: Company, emails: readonly string[]): Promise<void> {
  const everybody = marker(company, "-");
  for (const email of emails) {
    const me = await meOf(email);
    everybody.known(me.user.id);
    everybody.known(me.company.id);
    everybody.known(email);
  }
}

const team = await newTeam();
const [owner, otherOwner] = [team.owner.email, team.otherOwner.email];
await Promise.all([markTeam("one", [owner, team.rep2.email]), markTeam("two", [otherOwner, team.otherRep.email])]);
const [plainId, foreignId] = [await userIdOf(team.rep.email), await userIdOf(team.otherRep.email)];
const disabled = userOf(marker("one", "-"), { role: "owner" });
// The service must refuse references to this disabled user and to this deactivated status in new records.
const [somebodyElse, disabledUser, inactiveStatus] = [
  await marker("one", "other", "/api/users").made(owner, "/api/users", userOf(marker("one", "other", "/api/users"))),
  await marker("one", "-").made(owner, "/api/users", disabled),
  await marker("one", "-").made(owner, "/api/statuses", { value: marker("one", "-").text() }),
];
bodyOf(await ask(owner, "DELETE", `/api/users/${disabledUser}`), 200, Identified);
bodyOf(await ask(owner, "DELETE", `/api/statuses/${inactiveStatus}`), 200, Identified);

const one = (): Promise<Stage> => newStage("one", owner, { mine: plainId, other: somebodyElse });
/** Records that no request changes. `kept` belongs to the first company, and `foreign` to the second. */
const [kept, foreign] = [await one(), await newStage("two", otherOwner, { mine: foreignId, other: foreignId })];
const working = ["owner", "admin", "plain", "viewer", "manager"];
const stages = new Map<CallerName, Stage>();
for (const caller of callers) stages.set(caller, working.includes(caller) ? await one() : kept);
const [admin, plain, viewer, manager] = [team.admin, team.rep, team.viewer, team.importer].map(({ email }) => email);
const emails: Readonly<Record<CallerName, string | undefined>> = {
  ...{ owner, admin, plain, viewer, manager },
  ...{ stranger: otherOwner, disabled: disabled.email, nobody: undefined },
};
const NEVER = 2 ** 50;
/** For each kind of record, an id that no record has. */
const never = Object.fromEntries(Object.keys(kept.mine).map((name) => [name, NEVER]));

async function call(caller: CallerName, method: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await ask(emails[caller], method, path, body);
  expect(leaks(caller, path, answer), `${method} ${path} by ${caller}: ${answer.text.slice(0, 300)}`).toEqual([]);
  return answer;
}

function problemShape({ status, headers, body }: Answer): unknown {
  const { requestId: _, ...problem } = z.parse(z.looseObject({ requestId: z.string() }), body);
  const calls = headers.get("server-timing");
  expect(calls?.startsWith("requests;")).toBe(status === 404);
  return { status, type: headers.get("content-type"), problem, calls };
}

/**
 * Expects that every answer has the same error and reports the same calls to the table. Returns the status of this error. It sends the
 * requests up to three times, because a function sometimes reserves ids or reads changed names, and then reports more calls.
 */
async function sameProblem(requests: readonly (() => Promise<Answer>)[], tries = 3): Promise<number | undefined> {
  const problems: unknown[] = [];
  for (const request of requests) problems.push(problemShape(await request()));
  if (tries > 1 && new Set(problems.map((problem) => JSON.stringify(problem))).size > 1)
    return sameProblem(requests, tries - 1);
  for (const problem of problems) expect(problem).toEqual(problems[0]);
  return z.parse(z.looseObject({ status: z.number() }), problems[0]).status;
}

test("the matrix has a row for every route, and no other", () => {
  const known = new Set(rows.map(({ method, path }) => `${method} ${path}`));
  const declared = routes.filter(({ path }) => path.startsWith("/api/")).map(({ method, path }) => `${method} ${path}`);
  expect([...known].toSorted()).toEqual(declared.toSorted());
});

const named = rows.map((row, at) => [`${row.method} ${row.path} ${row.whose}`, row, at] as const);

/** Returns one of the callers, which varies from row to row. With the size `wide`, returns all of them. */
function someOf<Caller extends CallerName>(alike: readonly Caller[], at: number): Caller[] {
  const count = sized({ short: 1, wide: alike.length });
  return alike.filter((_, i) => (i - (at % alike.length) + alike.length) % alike.length < count);
}

/** Returns one or more callers for each status that the row expects. */
function callersOf({ statuses }: Row, at: number): CallerName[] {
  const alike = Map.groupBy(callers, (caller) => statuses[callers.indexOf(caller)]);
  return [...alike.values()].flatMap((same) => someOf(same, at));
}

/** The rows run one after the other, because concurrent rows could change each other's records. */
test.each(named)("%s", { tags: "sized" }, async (_, row, at) => {
  const found: [CallerName, number][] = [];
  for (const caller of callersOf(row, at)) {
    const stage = stages.get(caller) ?? kept;
    const path = pathOf(row, stage[row.whose]);
    found.push([caller, (await call(caller, row.method, path, bodyFor(row) ?? formFor(row))).status]);
  }
  expect(Object.fromEntries(found)).toEqual(
    Object.fromEntries(found.map(([caller]) => [caller, row.statuses[callers.indexOf(caller)]])),
  );
  if (row.path.includes("{id}")) await expectIndistinguishable(row, at);
});

/** Expects equal answers for a missing record, a record of another company, and one of the same company that the caller may not see. */
async function expectIndistinguishable(row: Row, at: number): Promise<void> {
  const unseenBy = (["plain", "viewer", "manager"] as const).filter(
    (caller) => row.statuses[callers.indexOf(caller)] === 404,
  );
  for (const caller of new Set([...someOf(["owner", "plain"], at), ...unseenBy])) {
    const hidden = caller !== "owner" && unseenBy.includes(caller) ? [kept[row.whose]] : [];
    const among = (body: object | undefined) =>
      sameProblem(
        [foreign.mine, never, ...hidden].map((records) => () => call(caller, row.method, pathOf(row, records), body)),
      );
    const isDenied = row.statuses[callers.indexOf(caller)] === 403;
    expect(await among(bodyFor(row))).toBe(isDenied ? 403 : 404);
    // The service must check access to the record in the path before the ids in the body: an error about these would reveal the record.
    const fields = references.filter(({ method, path }) => method === row.method && path === row.path);
    if (fields.length > 0) await among({ ...bodyFor(row), assignedToUserId: NEVER, tagIds: [NEVER] });
  }
}

test("only the user who began an import gets its upload link", async () => {
  const Job = z.object({ id: z.number(), state: z.string(), upload: z.nullable(z.object({ url: z.string() })) });
  const makers = ["owner", "admin", "manager"] as const;
  for (const maker of makers) {
    const begun = bodyOf(await call(maker, "POST", "/api/prospects/imports", { dryRun: true }), 201, Job);
    const path = `/api/prospects/imports/${begun.id}`;
    const link = new URL(begun.upload?.url ?? "");
    for (const caller of makers.filter((other) => other !== maker)) {
      const [shown, listed] = [await call(caller, "GET", path), await call(caller, "GET", "/api/prospects/imports")];
      if (caller === "manager") problemOf(shown, 404, "not_found");
      else expect(bodyOf(shown, 200, Job)).toMatchObject({ state: "awaiting_upload", upload: null });
      expect(listed.text.includes(`"id":${begun.id},`)).toBe(caller !== "manager");
      for (const { text } of [shown, listed]) expect(text).not.toContain(link.pathname);
    }
    const own = bodyOf(await call(maker, "GET", path), 200, Job);
    expect(new URL(own.upload?.url ?? "").pathname).toBe(link.pathname);
    expect((await call(maker, "GET", "/api/prospects/imports")).text).toContain(`"id":${begun.id},`);
    const cancelled = await call(maker, "POST", `${path}/cancel`);
    expect(cancelled.status).toBe(200);
    expect(cancelled.text).not.toContain(link.pathname);
  }
});

test("a registration exists below its own webhook only", async () => {
  const row = { method: "DELETE", path: "/api/webhooks/{id}/registrations/{registrationId}" };
  const { webhooks, registrations } = kept.mine;
  const mixed = [
    { webhooks, registrations: foreign.mine.registrations },
    { webhooks, registrations: NEVER },
    { webhooks: foreign.mine.webhooks, registrations },
    { webhooks: NEVER, registrations },
  ];
  const requests = mixed.map((ids) => () => call("owner", row.method, pathOf(row, { ...never, ...ids })));
  expect(await sameProblem(requests)).toBe(404);
});

interface Reference extends Pick<Row, "method" | "path"> {
  readonly field: string;
  readonly names: keyof Records & ("users" | "statuses" | "tags" | "addresses");
}

/** For each body field with ids, the collection of the records that have these ids. */
const collections: Readonly<Record<string, Reference["names"]>> = {
  currentStatusId: "statuses",
  ...{ assignedToUserId: "users", assignedByUserId: "users", toUserId: "users", fromUserId: "users" },
  addressId: "addresses",
  tagIds: "tags",
};

const BodySchema = z.union([
  z.object({ $ref: z.string() }),
  z.object({ properties: z.optional(z.record(z.string(), z.unknown())) }),
]);
const Operation = z.object({
  requestBody: z.optional(
    z.object({ content: z.object({ "application/json": z.optional(z.object({ schema: BodySchema })) }) }),
  ),
});
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({
    schemas: z.record(z.string(), z.looseObject({ properties: z.optional(z.record(z.string(), z.unknown())) })),
  }),
});

/** Routes whose body is a filter. An unknown id in a filter is no error: the filter matches nothing. */
const filters: ReadonlySet<string> = new Set(["/api/prospects/exports"]);

/** Fields with ids that the client chooses. They are not ids of records of the service. */
const ownIds: ReadonlySet<string> = new Set(["sourceId", "clientRecordId", "deviceId"]);

/** The body fields in the OpenAPI document that contain the id of a record, according to their names. */
function documented(): Omit<Reference, "names">[] {
  const text = readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8");
  const { paths, components } = z.parse(Document, JSON.parse(text));
  const written = Object.entries(paths).filter(([path]) => !filters.has(path));
  return written.flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const schema = requestBody?.content["application/json"]?.schema ?? {};
      const { properties = {} } =
        "$ref" in schema ? (components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}) : schema;
      const fields = Object.keys(properties).filter((name) => /Ids?$/.test(name) && !ownIds.has(name));
      return fields.map((field) => ({ method: method.toUpperCase(), path, field }));
    }),
  );
}

const references: readonly Reference[] = documented().map((one) => {
  const names = collections[one.field];
  if (names === undefined) throw new Error(`name the collection of ${one.field}`);
  return { ...one, names };
});

test("the tests have a case for every body field that is the id of another record", () => {
  expect(new Set(references.map(({ field }) => field))).toEqual(new Set(Object.keys(collections)));
});

test.each(
  references.map((reference, at) => [`${reference.method} ${reference.path}`, reference.field, reference, at] as const),
)(
  "%s: a %s of another company, of a missing record and of an inactive record give the same error",
  { tags: "sized" },
  async (_, field, { method, path, names }, at) => {
    const inactiveOnes = { users: [disabledUser], statuses: [inactiveStatus], tags: [], addresses: [] }[names];
    // In `fromUserId`, a disabled user is allowed. The request takes the prospects inside a territory away from this user, which is useful
    // for a user who no longer works.
    const retired = field === "fromUserId" ? [] : inactiveOnes;
    const callers = ["admin", path.endsWith("/runs") ? "manager" : "plain"] as const;
    for (const caller of someOf(callers, at)) {
      const hidden = caller === "plain" && names === "addresses" ? [kept.other.addresses] : [];
      const requests = [foreign.mine[names], NEVER, ...retired, ...hidden].map(
        (id) => () =>
          call(caller, method, pathOf({ path }, kept.mine), {
            ...bodyFor({ method, path }),
            [field]: field === "tagIds" ? [id] : id,
          }),
      );
      expect(await sameProblem(requests)).toBe(400);
    }
  },
);

test("a filter by another company's record finds what a filter by a missing record finds", async () => {
  const found = async (caller: CallerName, path: string): Promise<string> => {
    const answer = await call(caller, "GET", path);
    expect(answer.status).toBe(200);
    return answer.text;
  };
  for (const path of ["/api/prospects", "/api/prospects/pins", "/api/appointments"]) {
    for (const caller of ["owner", "plain"] as const) {
      const [foreignOne, nobody] = [foreign.mine.users, NEVER].map((id) => `${path}?assignedToUserId=${id}`);
      expect(await found(caller, `${foreignOne}`)).toBe(await found(caller, `${nobody}`));
    }
  }
});

test("no search or filter finds a hidden prospect by any of its texts", async () => {
  const total = async (caller: CallerName, parameter: string, value: string): Promise<number> =>
    bodyOf(await call(caller, "GET", `/api/prospects?${parameter}=${encodeURIComponent(value)}`), 200, Total).total;
  for (const [parameter, value] of await textsOf(kept.other.prospects)) {
    expect(await total("owner", parameter, value), parameter).toBe(1);
    for (const caller of ["plain", "manager", "stranger"] as const) {
      expect(await total(caller, parameter, value), `${parameter} by ${caller}`).toBe(0);
    }
  }
});

const Total = z.object({ total: z.number() });
const Texts = z.object({
  name: z.string(),
  phoneNumber: z.string(),
  secondaryPhoneNumber: z.string(),
  emailAddress: z.string(),
  address: z.object({ address1: z.string(), city: z.string(), zip: z.string() }),
  currentStatus: z.object({ value: z.string() }),
  tags: z.tuple([z.object({ tag: z.object({ value: z.string() }) })]),
  notes: z.tuple([z.object({ body: z.string() })]),
});

async function textsOf(id: number): Promise<(readonly [string, string])[]> {
  const it = bodyOf(await call("owner", "GET", `/api/prospects/${id}`), 200, Texts);
  const { name, phoneNumber, secondaryPhoneNumber, emailAddress, address } = it;
  const texts = [name, phoneNumber, secondaryPhoneNumber, emailAddress, address.address1, address.zip];
  return [
    ...[...texts, it.notes[0].body].map((text) => ["search", text] as const),
    ["city", it.address.city],
    ["status", it.currentStatus.value],
    ["tagId", it.tags[0].tag.value],
  ];
}
