/**
 * Implements `npm run company -- create --name NAME --owner EMAIL`, which creates a company with its owner, in a deployed stack or in the
 * local service.
 */
import * as z from "zod/mini";
import { directoryOnly, type IdentityProvider, userPool } from "#shared/auth/identity-provider.ts";
import type { ClientSettings } from "#shared/aws/client-config.ts";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { contextOn } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";
import * as limits from "#shared/limits.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { Email, text } from "#shared/schema.ts";
import { must, textUpTo } from "../command/accepted.ts";
import { checked, optionsOf, texts } from "../command/options.ts";
import { stackNameOf } from "../settings/names.ts";
import { chosenStack } from "./chosen-stack.ts";
import { deployedTable, type TableInUse, tableInUse } from "./table-in-use.ts";

const Input = z.object({
  name: z.pipe(textUpTo(limits.name), text(limits.name)),
  owner: z.string().check(z.refine((email) => z.safeParse(Email, email).success, must("an e-mail address"))),
  "first-name": z._default(text(limits.name), ""),
  "last-name": z._default(text(limits.name), ""),
  stage: z.optional(z.string()),
  stack: z.optional(z.string()),
  sub: z.optional(textUpTo(255)),
});

interface Target {
  readonly label: string;
  readonly table: Table;
  readonly identities: IdentityProvider;
}

/**
 * `--sub` names the owner's subject at an external identity provider. The local service never uses one, so `--sub` chooses a deployed
 * stack.
 */
async function targetOf(stack: string | undefined, sub: string | undefined): Promise<Target> {
  if (sub !== undefined) {
    const identities = { ...directoryOnly, invite: async () => ({ sub }) };
    return { ...(await deployedTable(stack ?? stackNameOf(undefined))), identities };
  }
  const found = await tableInUse(stack);
  return { ...found, identities: identitiesOf(found) };
}

const identitiesOf = ({ isLocal, userPoolId, dynamoDb }: TableInUse): IdentityProvider =>
  isLocal ? directoryOnly : ownPool(userPoolId, dynamoDb);

function ownPool(userPoolId: string | undefined, settings: ClientSettings): IdentityProvider {
  if (userPoolId === undefined)
    throw new Error("this stack uses an external identity provider: name the owner's subject there by --sub");
  return userPool(userPoolId, cognitoClient(settings));
}

/** `usage` is printed if the arguments are wrong. */
export async function createCommand(args: readonly string[], usage: string): Promise<void> {
  const names = ["name", "owner", "first-name", "last-name", "stage", "stack", "sub"];
  const input = checked(Input, optionsOf(args, texts(names), usage), usage);
  const { name, owner: email, sub } = input;
  const target = await targetOf(chosenStack(input), sub);
  const { table } = target;
  const owner = { email, firstName: input["first-name"], lastName: input["last-name"] };
  const made = await createCompany(contextOn(table), {
    name,
    owner: { ...owner, ...(await target.identities.invite(email)) },
  });
  console.log(`company ${made.company.id} ${name} with owner ${made.owner.id} ${email} on ${target.label}`);
}
