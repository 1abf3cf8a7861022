/** Creates the two demo companies and, on request, many synthetic prospects. On the same day, the data is always the same. */
import { createHash } from "node:crypto";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import { countingBegins, logWrites } from "#shared/company-index/activity/log.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { addRows } from "#shared/company-index/write/publish.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { type StoredTag, Tag } from "#shared/reference/schema.ts";
import { newUserWrites } from "#shared/reference/user.ts";
import { newValueWrites } from "#shared/reference/values.ts";
import { newTerritory, newTerritoryWrites } from "#shared/territories/territories.ts";
import { documentsAt } from "../servers/clients.ts";
import { type City, denver, phoenix } from "./cities.ts";
import companies from "./companies.json" with { type: "json" };
import { type DemoCompany, type DemoRows, demoRows } from "./prospects.ts";
import { randomSequence } from "./random.ts";
import { ownerOf } from "./synthetic-prospect.ts";

interface DemoTarget {
  readonly TableName: string;
  readonly DynamoDbEndpoint: string;
}

const DemoUser = z.pick(StoredUser, { email: true, firstName: true, lastName: true, role: true, permissions: true });

const Plans = z.array(
  z.object({
    name: z.string(),
    city: z.enum(["denver", "phoenix"]),
    /** The first user is the owner. */
    users: z.array(DemoUser),
    tags: z.array(z.omit(Tag, { id: true })),
  }),
);
const plans = z.parse(Plans, companies);
type Plan = (typeof plans)[number];

const cities = { denver, phoenix } as const;

const PROSPECTS_PER_COMPANY = 200;
/** Number of prospects whose rows are built and written in one step. It limits the memory. */
const CHUNK = 2_000;

export async function loadDemo(target: DemoTarget): Promise<void> {
  const context = openContext(target);
  for (const [index, plan] of plans.entries()) {
    const company = await createDemoCompany(context, plan);
    const { indexed, facts } = await loadProspects(context, company, PROSPECTS_PER_COMPANY, randomSequence(index + 1));
    await addRows(context, company.id, indexed, (version) => logWrites(company.id, version, facts));
    await loadTerritories(context, company);
  }
}

export async function loadSynthetic(target: DemoTarget, count: number): Promise<void> {
  const context = openContext(target);
  const company = await findDemoCompany(context, at(plans, 0));
  const random = randomSequence(count);
  const indexed: RowWithNotes[] = [];
  for (let done = 0; done < count; done += CHUNK) {
    indexed.push(...(await loadProspects(context, company, Math.min(CHUNK, count - done), random)).indexed);
  }
  await addRows(context, company.id, indexed);
  // `addRows` adds all index entries in one transaction. DynamoDB limits the size of a transaction, so this one contains no facts of
  // the prospects. Record that the facts of the company are complete only from now on.
  await context.table.transact([countingBegins(company.id, context.clock.now())]);
}

const openContext = ({ TableName, DynamoDbEndpoint }: DemoTarget): ApiContext =>
  contextOn(openTable(TableName, documentsAt(DynamoDbEndpoint)));

async function createDemoCompany(context: ApiContext, plan: Plan): Promise<DemoCompany> {
  const first = at(plan.users, 0);
  const { company, owner } = await createCompany(context, {
    name: plan.name,
    owner: { ...first, sub: demoSubject(first.email) },
  });
  const now = iso(context.clock.now());
  for (const entry of plan.users.slice(1)) {
    const stored: StoredUser = {
      ...entry,
      type: "user",
      id: await context.ids.next(),
      companyId: company.id,
      sub: demoSubject(entry.email),
      isActive: true,
      version: 1,
      createdAt: now,
      updatedAt: now,
    };
    await context.table.transact(newUserWrites(stored));
  }
  for (const { value, color } of plan.tags) {
    const dated = { createdAt: now, updatedAt: now };
    const tag: StoredTag = { type: "tag", id: await context.ids.next(), value, color, version: 1, ...dated };
    await context.table.transact(newValueWrites(company.id, tag));
  }
  return describeCompany(context, company.id, owner.id, cities[plan.city]);
}

async function findDemoCompany(context: ApiContext, plan: Plan): Promise<DemoCompany> {
  const owner = await context.table.get(keys.email(at(plan.users, 0).email));
  if (typeof owner?.companyId !== "number" || typeof owner.userId !== "number") {
    throw new Error(`the table holds no ${plan.name}; start with --fresh`);
  }
  return describeCompany(context, owner.companyId, owner.userId, cities[plan.city]);
}

async function describeCompany(context: ApiContext, id: number, ownerId: number, city: City): Promise<DemoCompany> {
  const { statuses, tags, users } = await loadDictionary(context.table, id);
  const reps = [...users.values()].filter(({ role, email }) => role === "sales" && email.startsWith("rep"));
  return {
    id,
    ownerId,
    city,
    statuses: [...statuses.values()],
    tagIds: [...tags.keys()],
    repIds: reps.map((rep) => rep.id),
  };
}

/** Stores the rows of new prospects. The caller adds the returned entries to the company's index and activity log. */
async function loadProspects(
  context: ApiContext,
  company: DemoCompany,
  count: number,
  random: () => number,
): Promise<Pick<DemoRows, "indexed" | "facts">> {
  const ids = await context.ids.takeProspects(company.id, count);
  const { rows, indexed, facts } = await demoRows(context, company, ids, random);
  await context.table.batchPut(rows);
  return { indexed, facts };
}

async function loadTerritories(context: ApiContext, company: DemoCompany): Promise<void> {
  const now = iso(context.clock.now());
  for (const [index, { name, corners }] of company.city.neighbourhoods.entries()) {
    const ring = [...corners, ...corners.slice(0, 1)];
    const polygon = ring.map((corner): [number, number] => [at(corner, 0), at(corner, 1)]);
    const input = {
      name,
      polygon,
      totalProperties: 290 + 45 * index,
      assignedToUserId: company.repIds[index] ?? null,
    };
    const territory = newTerritory(await context.ids.next(), ownerOf(company), input, now);
    await context.table.transact(newTerritoryWrites(territory));
  }
}

/** Returns a user's subject. It depends only on the e-mail address, so tokens stay valid after the demo data is created again. */
function demoSubject(email: string): string {
  const hex = createHash("sha256").update(email).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
