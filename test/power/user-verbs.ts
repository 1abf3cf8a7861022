/** Verbs of users and invitations, for the laws of interleaved.ts: they run another verb between two table calls of each verb. */
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { changeUser, createUser, disableOrWithdraw, updateUser } from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import { holds, type Law, type Process, type Verb } from "./interleaved.ts";

/** An identity provider that gives the same e-mail address the same subject (the user's id at the provider) each time. */
export const identities: IdentityProvider = {
  takesSubjects: false,
  answersAfterMs: 0,
  invite: async (email, known) => ({ sub: known ?? `sub of ${email}` }),
  withdraw: async () => undefined,
};

export const MAIL = { email: "new@x.test", firstName: "N", lastName: "N", permissions: [] };
export const newRep = (email = MAIL.email) => ({ ...MAIL, email, role: "sales" as const });

/** An identity provider whose subjects the inviter chooses. */
const named: IdentityProvider = { ...identities, takesSubjects: true };
const MONTH_MS = 31 * 86_400_000;

export const adminVerbs: Readonly<Record<string, Verb<Company & { readonly admin: Caller }>>> = {
  "admin is disabled": (context, { caller, admin }) => updateUser(context, caller, admin.userId, { isActive: false }),
  "admin loses the role": (context, { caller, admin }) => updateUser(context, caller, admin.userId, { role: "sales" }),
};

const later = (context: Process): Process => ({ ...context, clock: { now: () => context.clock.now() + MONTH_MS } });

const users = holds({
  // `used` counts invitations, and is not compared: it also counts failed invitations, because their mail may have been sent.
  ignored: ["used"],
  // A new user whose address belongs to another company gets a random subject.
  random: /[0-9a-f]{8}-[0-9a-f-]{27}/g,
  stage: async (context) => {
    const company = await newCompany(context);
    const { caller } = company;
    const admin = await createUser(context, identities, caller, { ...MAIL, email: "admin@x.test", role: "admin" });
    await lookUpCaller(context, admin.sub);
    const invited = await createUser(context, identities, caller, newRep("invited@x.test"));
    const adminCaller: Caller = { companyId: caller.companyId, userId: admin.id, role: "admin", permissions: [] };
    const { id: withdrawn } = await createUser(context, identities, caller, newRep("w@x.test"));
    await disableOrWithdraw(context, identities, caller, withdrawn);
    // The owner of another company.
    const { caller: stranger } = await newCompany(context);
    await createUser(context, named, stranger, { ...newRep("held@x.test"), sub: "holder" });
    return { ...company, admin: adminCaller, stranger, withdrawn, invited: invited.id, sub: invited.sub };
  },
  pairs: {
    "new user": ["new user by the admin", "its address elsewhere", "its subject elsewhere"],
    "new user of a held address": ["new user of a held address"],
    "new user by the admin": ["admin loses the role", "new user"],
    "name of the invited": [
      "rights of the invited",
      "withdrawal",
      "first sign-in",
      "admin loses the role",
      "admin is disabled",
    ],
    "rights of the invited": ["name of the invited", "first sign-in", "withdrawal"],
    "renewed invitation": ["name of the withdrawn"],
    withdrawal: ["first sign-in", "rights of the invited", "later owner of the address"],
    "first sign-in": ["rights of the invited", "withdrawal", "name of the invited"],
    "sign-in before the end": ["later user of the subject", "later owner of the address"],
  },
  refusals: {
    "new user": { "new user by the admin": "conflict" },
    "new user of a held address": { "new user of a held address": "conflict" },
    "new user by the admin": { "new user": "conflict", "admin loses the role": "permission_denied" },
    "name of the invited": { "admin loses the role": "permission_denied", "admin is disabled": "permission_denied" },
    "first sign-in": { withdrawal: "unauthenticated" },
    "sign-in before the end": { "later owner of the address": "conflict" },
  },
  verbs: {
    "new user": (context, { caller }) => createUser(context, identities, caller, newRep()),
    "new user by the admin": (context, { admin }) => createUser(context, identities, admin, newRep()),
    "name of the invited": (context, { admin, invited }) => updateUser(context, admin, invited, { firstName: "Z" }),
    "rights of the invited": (context, { caller, invited }) =>
      changeUser(context, identities, caller, invited, { permissions: ["canViewAllProspects"] }),
    withdrawal: (context, { caller, invited }) => disableOrWithdraw(context, identities, caller, invited),
    "new user of a held address": (context, { caller }) =>
      createUser(context, identities, caller, newRep("held@x.test")),
    "its address elsewhere": (context, { stranger }) =>
      createUser(context, named, stranger, { ...newRep(), sub: "other" }),
    "its subject elsewhere": (context, { stranger }) =>
      createUser(context, named, stranger, { ...newRep("o@x.test"), sub: `sub of ${MAIL.email}` }),
    "first sign-in": (context, { sub }) => lookUpCaller(context, sub),
    // The sign-in begins before the invitation expires. The competing verbs run a month later, when another user may get the subject or the
    // address of the invitation.
    "sign-in before the end": (context, { sub }) =>
      lookUpCaller(context, sub).catch(() => {
        throw new ConditionFailed([]);
      }),
    "later user of the subject": (context, { stranger, sub }) =>
      createUser(later(context), named, stranger, { ...newRep("o@x.test"), sub }),
    "later owner of the address": (context, { stranger }) =>
      createUser(later(context), named, stranger, { ...newRep("invited@x.test"), sub: "other" }),
    "renewed invitation": (context, { caller, withdrawn }) =>
      changeUser(context, identities, caller, withdrawn, { isActive: true }),
    "name of the withdrawn": (context, { caller, withdrawn }) =>
      updateUser(context, caller, withdrawn, { firstName: "Z" }),
    ...adminVerbs,
  },
});

export const laws: Readonly<Record<string, Law>> = { "users, invitations and rights": users };
