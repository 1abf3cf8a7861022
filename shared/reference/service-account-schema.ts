/** The schemas of service accounts and API keys. */
import * as z from "zod/mini";
import { Scope } from "#shared/auth/scopes.ts";
import { PERMISSIONS_TEXT, Role, UserSummary, userFields } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { Permissions } from "#shared/reference/user.ts";
import { named, PathId, requiredText, Timestamp } from "#shared/schema.ts";

const { id, role, permissions, createdAt, updatedAt } = userFields;

export const ServiceAccount = named(
  "ServiceAccount",
  z.object({ id, name: z.string(), role, permissions, createdAt, updatedAt }),
  "A program that uses the API. It is a user who cannot sign in, and its keys are its tokens.",
);

const given = { name: requiredText(limits.name), role: Role, permissions: Permissions };

export const NewServiceAccount = named(
  "NewServiceAccount",
  z.object({ ...given, permissions: z._default(Permissions, []) }),
  "A new service account.",
);
export type NewServiceAccount = z.output<typeof NewServiceAccount>;

export const ServiceAccountPatch = named("ServiceAccountPatch", z.partial(z.object(given)), "Only sent fields change.");
export type ServiceAccountPatch = z.output<typeof ServiceAccountPatch>;

const shown = {
  id: z.string(),
  name: z.string(),
  last4: z.string(),
  scopes: z.array(Scope),
  createdBy: z.nullable(UserSummary),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  lastUsedAt: z.nullable(Timestamp),
  orphanedAt: z.nullable(Timestamp),
  replacedBy: z.nullable(z.string()),
};
export const ApiKey = named("ApiKey", z.object(shown), "A key of a service account, without its secret.");
export type ApiKey = z.infer<typeof ApiKey>;

export const ApiKeyWithSecret = named(
  "ApiKeyWithSecret",
  z.object({ ...shown, key: z.string() }),
  "A new key. No other answer shows its secret.",
);
export type ApiKeyWithSecret = z.infer<typeof ApiKeyWithSecret>;

const Scopes = z.array(Scope).check(
  z.minLength(1, "must have at least one scope"),
  z.refine((list) => new Set(list).size === list.length, { error: "must hold each scope once" }),
  z.meta({ uniqueItems: true }),
);

export const NewApiKey = named(
  "NewApiKey",
  z.object({ name: requiredText(limits.name), scopes: Scopes, expiresAt: z.optional(Timestamp) }),
  "A new key of a service account.",
);
export type NewApiKey = z.output<typeof NewApiKey>;

export const Rotation = named(
  "Rotation",
  z.object({ overlapSeconds: z._default(z.int().check(z.minimum(0), z.maximum(limits.keyOverlapSeconds)), 0) }),
  "How long the old key works beside the new one.",
);
export type Rotation = z.output<typeof Rotation>;

/** The form of `keyId` is not checked, so that any unknown id leads to 404. */
export const KeyPath = z.object({ id: PathId, keyId: z.string() });

export const RevokedKey = named("RevokedKey", z.object({ id: z.string() }), "The revoked key.");

const days = (ms: number): number => ms / 86_400_000;

/* @__PURE__ */ explain([ServiceAccount, NewServiceAccount, ServiceAccountPatch], () => ({
  fields: {
    name: "What the program does, such as `Web form`.",
    role: "A key of the account never has more rights than this role.",
    permissions: `${PERMISSIONS_TEXT} A sales account needs \`canViewAllProspects\`, because it has no own prospects.`,
  },
}));
/* @__PURE__ */ explain([NewServiceAccount], () => ({
  example: { name: "Web form", role: "sales", permissions: ["canViewAllProspects"] },
}));
/* @__PURE__ */ explain([ServiceAccountPatch], () => ({ example: { name: "Web form of the agency" } }));
/* @__PURE__ */ explain([ApiKey, ApiKeyWithSecret, NewApiKey], () => ({
  fields: {
    name: "Where the key is used.",
    scopes: "What the key may do. Writing does not include reading.",
    expiresAt: `The key ends at this time. The default is ${days(limits.keyMs)} days from now, the maximum ${days(limits.keyMsMax)} days.`,
  },
}));
/* @__PURE__ */ explain([ApiKey, ApiKeyWithSecret], () => ({
  fields: {
    id: "The key contains its id, after `pck_`.",
    last4: "The last characters of the key.",
    createdBy: "Who has created, rotated or taken over the key. It never has more rights than this user has.",
    lastUsedAt: "When the key was used, at most about 15 minutes before its last use. Null if it was never used.",
    orphanedAt: `When its creator was disabled or got a lower role. The key ends ${days(limits.orphanedKeyMs)} days later, unless an admin takes it over.`,
    replacedBy: "The id of the key that has replaced this one.",
  },
}));
/* @__PURE__ */ explain([ApiKeyWithSecret], () => ({
  fields: { key: "Send it as `Authorization: Bearer`. Store it now: it cannot be read again." },
}));
/* @__PURE__ */ explain([NewApiKey], () => ({
  example: { name: "Production", scopes: ["prospects:read", "prospects:write"] },
}));
/* @__PURE__ */ explain([Rotation], () => ({
  fields: { overlapSeconds: "Seconds for which the old key still works. With 0, it ends at once." },
  example: { overlapSeconds: 86_400 },
}));
/* @__PURE__ */ explain([KeyPath], () => ({
  fields: {
    id: { description: "Id of the service account.", example: 1024 },
    keyId: { description: "Id of the key.", example: "4fK2xQ9a" },
  },
}));
