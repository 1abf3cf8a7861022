/** Implements `npm run key -- create`, which creates a service account with its first key, in a deployed stack or in the local service. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { Scope } from "#shared/auth/scopes.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { systemClock } from "#shared/clock.ts";
import { commitTo, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { carryOut, type Plan } from "#shared/db/plan.ts";
import type { Table } from "#shared/db/table.ts";
import * as limits from "#shared/limits.ts";
import { createKey } from "#shared/reference/api-keys.ts";
import { invitationOf } from "#shared/reference/invite.ts";
import { createAccount } from "#shared/reference/service-accounts.ts";
import { CompanyEmail } from "#shared/reference/user.ts";
import { getUser } from "#shared/reference/users.ts";
import { CompanyId, must, textUpTo, wholeNumber } from "./command/accepted.ts";
import { command, runCommands } from "./command/options.ts";
import { chosenStack, stackInput, stackUsage, tableInUse } from "./table-in-use.ts";

const usage = `npm run --silent key -- create --company N --by EMAIL --name NAME --scopes SCOPE,SCOPE
    creates a service account with one key, and prints only the key to stdout
    --by EMAIL          the owner or admin of the company who answers for the key
    [--role ROLE]       sales, admin or owner (default sales, which sees all prospects)
    [--permissions P,P] for the role sales (default canViewAllProspects)
    [--days N]          the lifetime of the key (default ${limits.keyMs / 86_400_000})
    scopes: ${Scope.options.join(", ")}
${stackUsage}
exit code 0: done, 1: refused or any other error, 2: wrong usage`;

/** Accepts names with commas between them, each name once. */
const namesOf = <Name extends string>(options: readonly Name[]) =>
  z.pipe(
    z.pipe(
      z.string(),
      z.transform((text) => text.split(",").map((part) => part.trim())),
    ),
    z
      .array(z.enum(options, must(`names of ${options.join(", ")}`)))
      .check(z.refine((names) => new Set(names).size === names.length, "must hold each name once")),
  );

const Input = z.strictObject({
  ...stackInput,
  company: CompanyId,
  by: z.string(),
  name: textUpTo(limits.name),
  scopes: namesOf(Scope.options),
  role: z._default(z.enum(Role.options, must(`one of ${Role.options.join(", ")}`)), "sales"),
  permissions: z._default(namesOf(Permission.options), ["canViewAllProspects"]),
  days: z._default(wholeNumber(1, limits.keyMsMax / 86_400_000), limits.keyMs / 86_400_000),
});

async function callerOf(table: Table, companyId: number, email: string): Promise<Caller> {
  const row = await table.get(keys.companyEmail(companyId, email.toLowerCase()));
  if (row === undefined) throw new Error(`company ${companyId} has no user ${email}`);
  const { userId } = CompanyEmail.parse(row);
  const user = await getUser({ table, clock: systemClock }, companyId, userId);
  const { role, permissions, isActive } = user;
  if (!isActive || invitationOf(user, Date.now()) !== "accepted" || role === "sales")
    throw new Error(`${email} is no admin or owner who has signed in to company ${companyId}`);
  return { companyId, userId, role, permissions };
}

async function create(input: z.output<typeof Input>): Promise<number> {
  const { company, by, name, role, permissions, scopes, days, ...stack } = input;
  const { table } = await tableInUse(chosenStack(stack));
  const context = contextOn(table);
  const caller = await callerOf(table, company, by);
  const commit = async <Answer>(verb: () => Promise<Plan<Answer>>): Promise<Answer> =>
    (await carryOut(verb, commitTo(table))).answer;
  const account = await commit(() => createAccount(context, caller, { name, role, permissions }));
  const expiresAt = new Date(Date.now() + days * 86_400_000).toISOString();
  const made = await commit(() => createKey(context, caller, account.id, { name, scopes, expiresAt }));
  console.error(`service account ${account.id} ${name}, key ${made.id}, valid until ${made.expiresAt}`);
  console.log(made.key);
  return 0;
}

await runCommands(usage, { create: command(Input, create) });
