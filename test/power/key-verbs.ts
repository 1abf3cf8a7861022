/** Verbs of service accounts and API keys, for the laws of interleaved.ts: they run another verb between two table calls of each verb. */
import type { Caller } from "#shared/auth/caller.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import * as limits from "#shared/limits.ts";
import * as api from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { holds, type Law, type Process } from "./interleaved.ts";
import { adminVerbs, identities, MAIL } from "./user-verbs.ts";

const ACCOUNT = { name: "program", role: "admin" as const, permissions: [] };
const KEY = { name: "k", scopes: ["keys:manage" as const] };
const ROTATION = { overlapSeconds: 60 };

const random = {
  // These fields and texts are not compared, because the ids and the secrets of new keys are random, and so is the id of the key ring of a
  // new account.
  ignored: ["digest", "last4", "used"],
  random: /(?<="(?:id|replacedBy|sub)":\{"S":")[0-9A-Za-z]{7,8}(?="\})|(?<=\bK#)[0-9A-Za-z]{7}\b/g,
};

async function newAdmin(context: Process, owner: Caller): Promise<Caller> {
  const { id } = await api.createUser(context, identities, owner, { ...MAIL, email: "admin@keys.test", role: "admin" });
  return { companyId: owner.companyId, userId: id, role: "admin", permissions: [] };
}

const keys = holds({
  ...random,
  stage: async (context) => {
    const company = await newCompany(context);
    const admin = await newAdmin(context, company.caller);
    const { id: account } = await api.createAccount(context, admin, ACCOUNT);
    // The key of `account` may change the keys of `other`. `full` can have one more key.
    const { id: other } = await api.createAccount(context, admin, ACCOUNT);
    const { id: full } = await api.createAccount(context, admin, ACCOUNT);
    const { id: keyId, key } = await api.createKey(context, admin, account, KEY);
    for (let i = 1; i < limits.keysPerAccount; i++) await api.createKey(context, company.caller, full, KEY);
    return { ...company, admin, account, other, full, keyId, program: await callerOfKey(context, key) };
  },
  pairs: {
    "new key": ["admin loses the role", "deletion of the account", "new key"],
    "new key of the program": ["admin loses the role", "revocation"],
    "new key of the program elsewhere": [
      "admin loses the role",
      "revocation",
      "lower role of the account",
      "deletion of the other account",
    ],
    "last key": ["last key"],
    rotation: ["rotation", "revocation", "admin loses the role"],
    revocation: ["rotation"],
    "take-over": ["revocation", "admin loses the role"],
    "admin loses the role": ["new key", "new key of the program elsewhere", "take-over", "new account"],
    "admin is disabled": ["new key of the program"],
    "deletion of the account": ["new key", "new key of the program elsewhere"],
    "lower role of the account": ["new key of the program elsewhere"],
    "new account": ["admin loses the role", "new account"],
    "new account of the program": ["deletion of the account"],
  },
  refusals: {
    "new key": { "admin loses the role": "permission_denied", "deletion of the account": "not_found" },
    "new key of the program": { "admin loses the role": "permission_denied", revocation: "permission_denied" },
    "new key of the program elsewhere": {
      "admin loses the role": "permission_denied",
      revocation: "permission_denied",
      "lower role of the account": "permission_denied",
      "deletion of the other account": "not_found",
    },
    "last key": { "last key": "conflict" },
    rotation: { rotation: "conflict", revocation: "not_found" },
    "take-over": { revocation: "not_found" },
    "new account": { "admin loses the role": "permission_denied" },
    "new account of the program": { "deletion of the account": "permission_denied" },
  },
  verbs: {
    "new key": (context, { admin, account }) => api.createKey(context, admin, account, KEY),
    "new key of the program": (context, { program, account }) => api.createKey(context, program, account, KEY),
    "new key of the program elsewhere": (context, { program, other }) => api.createKey(context, program, other, KEY),
    "last key": (context, { caller, full }) => api.createKey(context, caller, full, KEY),
    rotation: (context, { caller, account, keyId }) => api.rotateKey(context, caller, account, keyId, ROTATION),
    revocation: (context, { caller, account, keyId }) => api.revokeKey(context, caller, account, keyId),
    "take-over": (context, { caller, account, keyId }) => api.takeOverKey(context, caller, account, keyId),
    "new account": (context, { admin }) => api.createAccount(context, admin, ACCOUNT),
    "new account of the program": (context, { program }) => api.createAccount(context, program, ACCOUNT),
    "deletion of the account": (context, { caller, account }) => api.deleteAccount(context, caller, account),
    "deletion of the other account": (context, { caller, other }) => api.deleteAccount(context, caller, other),
    "lower role of the account": (context, { caller, account }) =>
      api.changeAccount(context, caller, account, { role: "sales", permissions: ["canViewAllProspects"] }),
    ...adminVerbs,
  },
});

/** A company that can have one more service account. */
const accounts = holds({
  ...random,
  stage: async (context) => {
    const company = await newCompany(context);
    for (let i = 1; i < limits.serviceAccounts; i++) await api.createAccount(context, company.caller, ACCOUNT);
    return company;
  },
  pairs: { "last account": ["last account"] },
  refusals: { "last account": { "last account": "conflict" } },
  verbs: { "last account": (context, { caller }) => api.createAccount(context, caller, ACCOUNT) },
});

export const laws: Readonly<Record<string, Law>> = {
  "service accounts, keys and the rights of their creators": keys,
  "the last service account of a company": accounts,
};
