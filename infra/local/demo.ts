/** The demo companies Acme Roofing and Globex Solar, always the same, and synthetic prospects in any number. */
import { createHash } from "node:crypto";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { iso } from "#shared/clock.ts";
import { createCompany } from "#shared/companies/create.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { addImported } from "#shared/company-index/imported.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { keys } from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import type { StoredTag } from "#shared/tags/schema.ts";
import { newTagWrites } from "#shared/tags/tags.ts";
import { newUserWrites } from "#shared/users/new-user.ts";
import type { Permission, Role, StoredUser } from "#shared/users/schema.ts";
import { type World, worldOn } from "#shared/world.ts";
import { denver, type Place, phoenix, randomSequence } from "./demo-data.ts";
import { type DemoCompany, demoRows } from "./demo-prospects.ts";
import { loadTerritories } from "./demo-territories.ts";

export interface DemoTarget {
  readonly TableName: string;
  readonly DynamoDbEndpoint: string;
}

interface DemoUser {
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly role: Role;
  readonly permissions: Permission[];
}

const user = (email: string, name: string, role: Role, ...permissions: Permission[]): DemoUser => {
  const [firstName = "", lastName = ""] = name.split(" ");
  return { email, firstName, lastName, role, permissions };
};

interface DemoPlan {
  readonly name: string;
  readonly place: Place;
  readonly owner: DemoUser;
  readonly users: readonly DemoUser[];
  readonly tags: readonly (readonly [value: string, color: string])[];
}

const acme: DemoPlan = {
  name: "Acme Roofing",
  place: denver,
  owner: user("owner@acme.test", "Olivia Owner", "owner"),
  users: [
    user("admin@acme.test", "Adam Admin", "admin"),
    user("rep@acme.test", "Rita Rep", "sales"),
    user("rep2@acme.test", "Ravi Rep", "sales"),
    user("viewer@acme.test", "Vera Viewer", "sales", "canViewAllProspects"),
    user("importer@acme.test", "Ivan Importer", "sales", "canManageProspects"),
  ],
  tags: [
    ["Hail Damage", "#DC2626"],
    ["Referral", "#2563EB"],
    ["Insurance", "#16A34A"],
  ],
};

const globex: DemoPlan = {
  name: "Globex Solar",
  place: phoenix,
  owner: user("owner@globex.test", "Otto Owner", "owner"),
  users: [user("rep@globex.test", "Rosa Rep", "sales")],
  tags: [
    ["South Facing", "#F59E0B"],
    ["Battery", "#7C3AED"],
  ],
};

export const demoEmails: readonly string[] = [acme, globex].flatMap(({ owner, users }) =>
  [owner, ...users].map(({ email }) => email),
);

const PROSPECTS_PER_COMPANY = 200;
/** Prospects whose rows are made and written at once. */
const CHUNK = 2_000;

/** Fills an empty table. */
export async function loadDemo(target: DemoTarget): Promise<void> {
  const world = openWorld(target);
  for (const [index, plan] of [acme, globex].entries()) {
    const company = await createDemoCompany(world, plan);
    const indexed = await loadProspects(world, company, PROSPECTS_PER_COMPANY, randomSequence(index + 1));
    await addImported(world, company.id, indexed);
    await loadTerritories(world, company);
  }
}

/** Adds `count` synthetic prospects to the first demo company. */
export async function loadSynthetic(target: DemoTarget, count: number): Promise<void> {
  const world = openWorld(target);
  const company = await findDemoCompany(world, acme);
  const random = randomSequence(count);
  const indexed: RowWithNotes[] = [];
  for (let done = 0; done < count; done += CHUNK) {
    indexed.push(...(await loadProspects(world, company, Math.min(CHUNK, count - done), random)));
  }
  await addImported(world, company.id, indexed);
}

function openWorld({ TableName, DynamoDbEndpoint }: DemoTarget): World {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  // Loading in bulk on a busy machine is slow, and no request waits for it.
  const patient = { maxAttempts: 5, requestHandler: { requestTimeout: 30_000 } };
  const local = { endpoint: DynamoDbEndpoint, region: "us-east-1", credentials };
  const table = openTable(TableName, dynamoClient({ ...local, ...patient }));
  return worldOn(table);
}

async function createDemoCompany(world: World, plan: DemoPlan): Promise<DemoCompany> {
  const { company, owner } = await createCompany(world, {
    name: plan.name,
    owner: { ...plan.owner, sub: demoSubject(plan.owner.email) },
  });
  const now = iso(world.clock.now());
  for (const entry of plan.users) {
    const stored: StoredUser = {
      ...entry,
      type: "user",
      id: await world.ids.next(),
      companyId: company.id,
      sub: demoSubject(entry.email),
      isActive: true,
      version: 1,
      createdAt: now,
      updatedAt: now,
    };
    await world.table.transact(newUserWrites(stored));
  }
  for (const [value, color] of plan.tags) {
    const dated = { createdAt: now, updatedAt: now };
    const tag: StoredTag = { type: "tag", id: await world.ids.next(), value, color, version: 1, ...dated };
    await world.table.transact(newTagWrites(company.id, tag));
  }
  return describeCompany(world, company.id, owner.id, plan.place);
}

async function findDemoCompany(world: World, plan: DemoPlan): Promise<DemoCompany> {
  const place = await world.table.get(keys.email(plan.owner.email));
  if (typeof place?.companyId !== "number" || typeof place.userId !== "number") {
    throw new Error(`the table holds no ${plan.name}; start with --fresh`);
  }
  return describeCompany(world, place.companyId, place.userId, plan.place);
}

async function describeCompany(world: World, id: number, ownerId: number, place: Place): Promise<DemoCompany> {
  const { statuses, tags, users } = await loadDictionary(world.table, id);
  const reps = [...users.values()].filter(({ role, email }) => role === "sales" && email.startsWith("rep"));
  return {
    id,
    ownerId,
    place,
    statuses: [...statuses.values()],
    tagIds: [...tags.keys()],
    repIds: reps.map((rep) => rep.id),
  };
}

/** Gives what the company index is to hold of them. */
async function loadProspects(
  world: World,
  company: DemoCompany,
  count: number,
  random: () => number,
): Promise<readonly RowWithNotes[]> {
  const ids = await world.ids.takeProspects(company.id, count);
  const { rows, indexed } = await demoRows(world, company, ids, random);
  await world.table.batchPut(rows);
  return indexed;
}

/** A subject as identity providers make them, the same each time for the same address. */
function demoSubject(email: string): string {
  const hex = createHash("sha256").update(email).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
