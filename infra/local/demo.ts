/** The demo companies Acme Roofing and Globex Solar, always the same, and synthetic prospects in any number. */
import { createHash } from "node:crypto";
import type { Permission, Role, StoredUser } from "#shared/auth/user-schema.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { iso } from "#shared/clock.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { addImported } from "#shared/company-index/write/publish.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import type { StoredTag } from "#shared/reference/schema.ts";
import { newTagWrites } from "#shared/reference/tags.ts";
import { newUserWrites } from "#shared/reference/user.ts";
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
  const context = openWorld(target);
  for (const [index, plan] of [acme, globex].entries()) {
    const company = await createDemoCompany(context, plan);
    const indexed = await loadProspects(context, company, PROSPECTS_PER_COMPANY, randomSequence(index + 1));
    await addImported(context, company.id, indexed);
    await loadTerritories(context, company);
  }
}

/** Adds `count` synthetic prospects to the first demo company. */
export async function loadSynthetic(target: DemoTarget, count: number): Promise<void> {
  const context = openWorld(target);
  const company = await findDemoCompany(context, acme);
  const random = randomSequence(count);
  const indexed: RowWithNotes[] = [];
  for (let done = 0; done < count; done += CHUNK) {
    indexed.push(...(await loadProspects(context, company, Math.min(CHUNK, count - done), random)));
  }
  await addImported(context, company.id, indexed);
}

function openWorld({ TableName, DynamoDbEndpoint }: DemoTarget): ApiContext {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  // Loading in bulk on a busy machine is slow, and no request waits for it.
  const patient = { maxAttempts: 5, requestHandler: { requestTimeout: 30_000 } };
  const local = { endpoint: DynamoDbEndpoint, region: "us-east-1", credentials };
  const table = openTable(TableName, dynamoClient({ ...local, ...patient }));
  return contextOn(table);
}

async function createDemoCompany(context: ApiContext, plan: DemoPlan): Promise<DemoCompany> {
  const { company, owner } = await createCompany(context, {
    name: plan.name,
    owner: { ...plan.owner, sub: demoSubject(plan.owner.email) },
  });
  const now = iso(context.clock.now());
  for (const entry of plan.users) {
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
  for (const [value, color] of plan.tags) {
    const dated = { createdAt: now, updatedAt: now };
    const tag: StoredTag = { type: "tag", id: await context.ids.next(), value, color, version: 1, ...dated };
    await context.table.transact(newTagWrites(company.id, tag));
  }
  return describeCompany(context, company.id, owner.id, plan.place);
}

async function findDemoCompany(context: ApiContext, plan: DemoPlan): Promise<DemoCompany> {
  const place = await context.table.get(keys.email(plan.owner.email));
  if (typeof place?.companyId !== "number" || typeof place.userId !== "number") {
    throw new Error(`the table holds no ${plan.name}; start with --fresh`);
  }
  return describeCompany(context, place.companyId, place.userId, plan.place);
}

async function describeCompany(context: ApiContext, id: number, ownerId: number, place: Place): Promise<DemoCompany> {
  const { statuses, tags, users } = await loadDictionary(context.table, id);
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
  context: ApiContext,
  company: DemoCompany,
  count: number,
  random: () => number,
): Promise<readonly RowWithNotes[]> {
  const ids = await context.ids.takeProspects(company.id, count);
  const { rows, indexed } = await demoRows(context, company, ids, random);
  await context.table.batchPut(rows);
  return indexed;
}

/** A subject as identity providers make them, the same each time for the same address. */
function demoSubject(email: string): string {
  const hex = createHash("sha256").update(email).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
