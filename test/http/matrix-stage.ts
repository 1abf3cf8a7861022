/**
 * Creates the records of the role matrix, and registers their texts and ids as marks. By these marks, a test finds records in answers to
 * callers who may not see the records.
 */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { type Answer, type Client, clientOf, json, send } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { bodyOf, Identified } from "../harness/shapes.ts";
import type { CallerName, Row, Whose } from "./matrix-table.ts";

export type Company = "one" | "two";

/** A text or id of a record that only some callers may see. */
interface Mark {
  readonly sign: string | number;
  readonly company: Company;
  readonly whose: Whose | "admins";
  /** The path of a list that shows this text or id to every user of the company. Undefined if no list shows it. */
  readonly home: string | undefined;
}

const marks: Mark[] = [];

const seenInCompany: Record<Mark["whose"], readonly CallerName[]> = {
  "-": ["owner", "admin", "plain", "viewer", "manager"],
  mine: ["owner", "admin", "plain", "viewer"],
  other: ["owner", "admin", "viewer"],
  admins: ["owner", "admin"],
};

function maySee(caller: CallerName, { company, whose, home }: Mark, path: string): boolean {
  if (company === "two") return caller === "stranger";
  // `GET /api/changes` also returns the records of the list with the path `home`, which every user of the company may see.
  const isHome = home !== undefined && (path.startsWith(home) || path.startsWith("/api/changes"));
  return seenInCompany[isHome ? "-" : whose].includes(caller);
}

/** Returns the marks that the body or the headers of the answer contain, although the caller may not see them. */
export function leaks(caller: CallerName, path: string, { headers, text }: Answer): (string | number)[] {
  const searched = `${[...headers].map(([name, value]) => `${name}: ${value}`).join("\n")}\n${text}`;
  const ids = new Set(Array.from(searched.matchAll(/[:[,/](\d+)(?=[,}\]\n])/g), ([, digits]) => Number(digits)));
  return marks
    .filter((mark) => !maySee(caller, mark, path))
    .map(({ sign }) => sign)
    .filter((sign) => (typeof sign === "string" ? searched.includes(sign) : ids.has(sign)));
}

/** The id of one record of each kind. A property has the name that the kind has in the paths of the routes, such as `tags`. */
export type Records = Readonly<Awaited<ReturnType<typeof newCommon>> & Awaited<ReturnType<typeof newProspect>>>;

/** The records for each assignee of their prospect. `-` has the records of `mine`, but its address belongs to no prospect. */
export type Stage = Readonly<Record<Whose, Records>>;

export function pathOf({ path }: Pick<Row, "path">, records: Readonly<Record<string, number>>): string {
  const idOf = new Map(Object.entries(records));
  const steps = path.split("/");
  const collection = steps[steps.indexOf("{id}") - 1] ?? "";
  return (
    path
      .replace("{id}", String(idOf.get(collection)))
      .replace(/\/clusters$/, "/clusters?bbox=-106,39,-104,41&zoom=10")
      // This tile is near the North Pole and contains no record.
      .replace("{z}/{x}/{y}", "22/0/0.mvt")
      .replace(/\/activity$/, "/activity?from=2026-01-01&to=2026-12-31&groupBy=territory")
      // No delivery has this id, so the answer is 404. Other tests check who may see an existing delivery.
      .replace("{deliveryId}", `dlv_${"0".repeat(29)}`)
      // No key has this id, so the answer is 404. Other tests check who may change an existing key.
      .replace("{keyId}", "00000000")
      .replace("{registrationId}", String(idOf.get(path.includes("/actions/") ? "actions" : "registrations")))
  );
}

/** Sends a request as the user with this e-mail address. Without an address, the request has no token. */
export async function ask(email: string | undefined, method: string, path: string, body?: unknown): Promise<Answer> {
  const sent = email === undefined ? send : clientOf(email).send;
  if (body instanceof FormData) return sent(method, path, { body });
  return sent(method, path, { headers: json, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

const WithRegistration = z.object({ id: z.number(), registrations: z.array(Identified) });
const WithAddress = z.object({ id: z.number(), address: Identified });

/** Creates the records of a company. `assignees` are the ids of the users to whom the two prospects are assigned. */
export async function newStage(
  company: Company,
  owner: string,
  assignees: { readonly mine: number; readonly other: number },
): Promise<Stage> {
  const common = await newCommon(company, owner);
  const [mine, other] = await Promise.all([
    newProspect(company, "mine", owner, assignees.mine),
    newProspect(company, "other", owner, assignees.other),
  ]);
  return { mine: { ...common, ...mine }, other: { ...common, ...other }, "-": { ...mine, ...common } };
}

/** Returns records that this user, an owner, may change. */
export async function newRecords({ email }: Client): Promise<Records> {
  const { user } = bodyOf(await ask(email, "GET", "/api/me"), 200, z.object({ user: Identified }));
  return (await newStage("one", email, { mine: user.id, other: user.id })).mine;
}

async function newCommon(company: Company, owner: string) {
  const shared = marker(company, "-");
  const admins = marker(company, "admins");
  const url = `http://127.0.0.1:9/${admins.text()}`;
  const registrations = [
    { event: admins.text(), filter: { [admins.text()]: admins.text() }, manualTriggerButtonText: admins.text() },
    { event: shared.text(), triggerMode: "manual", manualTriggerButtonText: shared.text() },
  ];
  const [imported, exports, jobs, addresses, territories, users, accounts, webhook] = await Promise.all([
    ask(owner, "POST", "/api/prospects/import", csvForm(`name,lat,lng\n${shared.text()},1,2\n`)),
    admins.made(owner, "/api/prospects/exports", { search: shared.text() }),
    completedJob(owner),
    shared.made(owner, "/api/addresses", addressOf(shared)),
    shared.made(owner, "/api/territories", { name: shared.text() }),
    shared.made(owner, "/api/users", userOf(shared)),
    shared.made(owner, "/api/service-accounts", { name: shared.text(), role: "admin" }),
    ask(owner, "POST", "/api/webhooks", {
      name: admins.text(),
      url,
      secretKey: `a secret ${admins.text()}`,
      registrations,
    }),
  ]);
  const imports = admins.known(bodyOf(imported, 200, Identified).id);
  const { id, registrations: made } = bodyOf(webhook, 201, WithRegistration);
  return {
    imports,
    exports,
    jobs: admins.known(jobs),
    addresses,
    territories,
    users,
    "service-accounts": accounts,
    webhooks: admins.known(id),
    registrations: admins.known(made[0]?.id ?? 0),
    /** A registration with a manual trigger. In paths below a prospect, such a registration is called an action. */
    actions: shared.known(made[1]?.id ?? 0),
  };
}

/** Creates a bulk job for a prospect that does not exist, and waits until the job is completed. Returns its id. */
async function completedJob(owner: string): Promise<number> {
  const body = { ids: [2 ** 50], action: { set: { currentStatusId: null } } };
  const { id } = bodyOf(await ask(owner, "POST", "/api/prospects/bulk", body), 202, Identified);
  const State = z.object({ state: z.string() });
  for (;;) {
    const { state } = bodyOf(await ask(owner, "GET", `/api/jobs/${id}`), 200, State);
    if (state === "completed") return id;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function newProspect(company: Company, whose: "mine" | "other", owner: string, assignedToUserId: number) {
  const its = marker(company, whose);
  const [statuses, tags] = await Promise.all(
    ["/api/statuses", "/api/tags"].map((home) =>
      marker(company, whose, home).made(owner, home, { value: marker(company, whose, home).text() }),
    ),
  );
  const answer = await ask(owner, "POST", "/api/prospects", {
    name: its.text(),
    phoneNumber: its.text(),
    secondaryPhoneNumber: its.text(),
    emailAddress: its.email(),
    source: its.text(),
    sourceId: its.text(),
    customFieldData: { [its.text()]: its.text() },
    lat: 1.5,
    lng: 2.5,
    address: addressOf(its),
    currentStatusId: statuses,
    assignedToUserId,
  });
  const { id: prospects, address } = bodyOf(answer, 201, WithAddress);
  its.known(prospects);
  its.known(address.id);
  const place = `/api/prospects/${prospects}`;
  const startAt = new Date(Date.now() + 7_200_000).toISOString();
  const appointment = { title: its.text(), location: its.text(), notes: its.text(), startAt };
  const [notes, appointments, tagged] = await Promise.all([
    its.made(owner, `${place}/notes`, { body: its.text() }),
    its.made(owner, `${place}/appointments`, appointment),
    ask(owner, "PUT", `${place}/tags`, { tagIds: [tags] }),
  ]);
  bodyOf(tagged, 200, Identified);
  const own = { prospects, addresses: address.id, notes, appointments };
  return { ...own, statuses: statuses ?? 0, tags: tags ?? 0 };
}

/** Returns functions that register texts and ids of one record as marks. */
export function marker(company: Company, whose: Mark["whose"], home?: string) {
  function known<Sign extends string | number>(sign: Sign): Sign {
    marks.push({ sign, company, whose, home });
    return sign;
  }
  const unique = (): string => `mark-${randomUUID().slice(0, 13)}`;
  return {
    known,
    text: () => known(unique()),
    email: () => known(`${unique()}@x.test`),
    made: async (owner: string, path: string, body: object): Promise<number> =>
      known(bodyOf(await ask(owner, "POST", path, body), 201, Identified).id),
  };
}

type Marker = ReturnType<typeof marker>;

const addressOf = ({ text }: Marker) => ({
  address1: text(),
  address2: text(),
  city: text(),
  state: text(),
  zip: text(),
});

export const userOf = ({ text, email }: Marker, more: object = {}) => ({
  email: email(),
  firstName: text(),
  lastName: text(),
  role: "sales",
  ...more,
});
