/** Prepares the companies of a load test: their users, webhooks and first prospects. */
import { readFileSync } from "node:fs";
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import { throttleSlot } from "#shared/auth/throttle-key.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { shown } from "../../infra/cli/command/accepted.ts";
import { WrongUsage } from "../../infra/cli/command/options.ts";
import { localToken } from "../../infra/local/local-token.ts";
import { tableAt } from "../harness/faulty-dynamodb.ts";
import { outputsOf } from "../harness/local-outputs.ts";
import { addRep } from "../harness/warm-function.ts";
import { patientCall } from "./calls.ts";
import type { Options } from "./options.ts";

interface Members {
  readonly admin: string;
  /** The access tokens of the reps. */
  readonly reps: readonly string[];
}

export interface Company extends Members {
  readonly id: number;
  /** Companies with the same number share a throttle. */
  readonly throttleSlot: number;
  readonly statusIds: readonly number[];
  readonly prospects: Prospect[];
  readonly webhookId: number;
  /** The time at which the webhook was created. The webhook gets an event for every later change. */
  readonly since: string;
  readonly box: string;
}

export interface Prospect {
  readonly id: number;
  statusId: number;
  /**
   * True while a change of the prospect has not been answered. The generator sends only one change of a prospect at a time, so that each
   * acknowledged change has a separate event.
   */
  isChanging: boolean;
}

const Tokens = z.array(z.object({ admin: z.string(), reps: z.array(z.string()).check(z.minLength(1)) }));

/** Reads the access tokens from the file or from LOAD_TOKENS. Throws WrongUsage if there are none. The error message contains no token. */
export function readTokens(file: string | undefined): readonly Members[] {
  const variable = process.env.LOAD_TOKENS;
  if (file === undefined && variable === undefined) {
    throw new WrongUsage("--base needs --tokens FILE or the variable LOAD_TOKENS: see npm run load -- --help");
  }
  try {
    return Tokens.parse(JSON.parse(file === undefined ? String(variable) : readFileSync(file, "utf8")));
  } catch {
    const list = "a list of tokens in JSON";
    const fault =
      file === undefined
        ? `LOAD_TOKENS: must be ${list}`
        : `--tokens: must be the name of a file with ${list}, and not ${shown(file)}`;
    throw new WrongUsage(`${fault}: see npm run load -- --help`);
  }
}

/** Creates companies with reps in a local service. The first company is the large one: the demo company Acme, which gets more reps. */
export async function localMembers(
  base: string,
  { companies, reps, "large-reps": largeReps }: Pick<Options, "companies" | "reps" | "large-reps">,
): Promise<readonly Members[]> {
  const outputs = await outputsOf(base);
  const context = contextOn(tableAt(outputs.DynamoDbEndpoint, outputs.TableName));
  const { companyId } = Acme.parse(await context.table.get(keys.email("owner@acme.test")));
  const emails = [{ admin: "owner@acme.test", reps: await addReps(context, companyId, "acme.test", largeReps) }];
  for (let i = 1; i <= companies; i++) {
    const domain = `load${i}.test`;
    const admin = `owner@${domain}`;
    const owner = { email: admin, firstName: "Olga", lastName: "Owner", sub: admin };
    const { company } = await createCompany(context, { name: `Load ${i}`, owner });
    emails.push({ admin, reps: await addReps(context, company.id, domain, reps) });
  }
  const members: Members[] = [];
  for (const entry of emails) {
    const repTokens = await Promise.all(entry.reps.map((email) => localToken(base, email)));
    members.push({ admin: await localToken(base, entry.admin), reps: repTokens });
  }
  return members;
}

/** Creates reps whose maps and lists contain all prospects of the company. Returns their e-mail addresses. */
async function addReps(context: ApiContext, companyId: number, domain: string, count: number): Promise<string[]> {
  const emails = Array.from({ length: count }, (_, i) => `load-rep${i + 1}@${domain}`);
  const rep = { firstName: "Ravi", lastName: "Rep", permissions: ["canViewAllProspects" as const] };
  for (const email of emails) await addRep(context, companyId, { ...rep, email });
  return emails;
}

const Acme = z.object({ companyId: z.int() });
const Me = z.object({ company: z.object({ id: z.int() }) });
const Statuses = z.array(z.object({ id: z.int(), isActive: z.boolean() }));
const Listed = z.object({
  items: z.array(
    z.object({ id: z.int(), currentStatus: z.nullable(z.object({ id: z.int() })), lat: z.number(), lng: z.number() }),
  ),
});
const Identified = z.object({ id: z.int() });
const Webhook = z.object({ id: z.int(), createdAt: z.string() });

/** Minimum number of prospects that a company has when the load begins. */
const FIRST_PROSPECTS = 6;
const PREPARED_AT_ONCE = 4;

export function prepare(
  base: string,
  members: readonly Members[],
  receiverUrl: string,
  progress: (text: string) => void,
): Promise<Company[]> {
  let prepared = 0;
  return mapConcurrently(members, PREPARED_AT_ONCE, async (one) => {
    const company = await prepareOne(base, one, receiverUrl);
    if (++prepared % 50 === 0) progress(`${prepared} companies are prepared`);
    return company;
  });
}

async function prepareOne(base: string, { admin, reps }: Members, receiverUrl: string): Promise<Company> {
  const [rep = admin] = reps;
  const { id } = Me.parse(await patientCall(base, admin, "GET", "/api/me")).company;
  const statuses = Statuses.parse(await patientCall(base, rep, "GET", "/api/statuses"));
  const statusIds = statuses.filter(({ isActive }) => isActive).map((status) => status.id);
  const { items } = Listed.parse(await patientCall(base, rep, "GET", "/api/prospects?pageSize=200"));
  const prospects = items.map(({ id, currentStatus }) => ({ id, statusId: currentStatus?.id ?? 0, isChanging: false }));
  const [statusId = 0] = statusIds;
  while (prospects.length < FIRST_PROSPECTS) {
    const created = await patientCall(base, rep, "POST", "/api/prospects", newProspect(prospects.length, statusId));
    prospects.push({ id: Identified.parse(created).id, statusId, isChanging: false });
  }
  const [{ lat, lng } = home] = items;
  const webhook = await patientCall(base, admin, "POST", "/api/webhooks", {
    name: "Load",
    url: `${receiverUrl}/${id}`,
    registrations: [{ event: "prospect.status_changed" }, { event: "prospect.created" }],
  });
  const box = [lng - 0.02, lat - 0.02, lng + 0.02, lat + 0.02].map((value) => value.toFixed(5)).join(",");
  const { id: webhookId, createdAt: since } = Webhook.parse(webhook);
  return { id, throttleSlot: throttleSlot(id), admin, reps, statusIds, prospects, webhookId, since, box };
}

const home = { lat: 39.7393, lng: -104.9903 } as const;

export function newProspect(number: number, currentStatusId: number): object {
  const lat = home.lat + (number % 100) / 10_000;
  const lng = home.lng + Math.floor(number / 100) / 10_000;
  const address = { address1: `${1_000 + number} Load St`, city: "Denver", state: "CO", zip: "80202" };
  return { name: `Load ${number}`, lat, lng, address, currentStatusId };
}
