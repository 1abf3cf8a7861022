/** The scopes of API keys: what a key may do. Persons have no scopes: only their role and permissions limit them. */
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import { named } from "#shared/schema.ts";

export const Scope = named(
  "Scope",
  z.enum([
    "prospects:read",
    "prospects:write",
    "prospects:delete",
    "prospects:export",
    "prospects:import",
    "territories:read",
    "territories:write",
    "reference:write",
    "webhooks:manage",
    "users:manage",
    "keys:manage",
    "audit:read",
  ]),
  "What a key may do. Writing does not include reading: an answer to a write only shows the written record.",
);
export type Scope = z.infer<typeof Scope>;

/** The scope that a key needs for an endpoint. If it is a list, the key needs only one of these scopes. */
export type NeededScope = Scope | readonly Scope[] | "none";

/** Returns the needed scopes as a list. Undefined if the endpoint needs no scope. */
export const scopesOf = (needed: NeededScope): readonly Scope[] | undefined => {
  if (needed === "none") return undefined;
  return typeof needed === "string" ? [needed] : needed;
};

interface KeyHolder {
  readonly key?: { readonly scopes: readonly Scope[] } | undefined;
}

export function requireScope({ key }: KeyHolder, needed: NeededScope): void {
  const enough = scopesOf(needed);
  if (key === undefined || enough === undefined || enough.some((scope) => key.scopes.includes(scope))) return;
  throw new ApiError("insufficient_scope", `The key needs the scope ${enough.join(" or ")}.`);
}
