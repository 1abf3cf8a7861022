/** Names of roles and permissions. A role or permission of a later release has no name here. */
import type { User } from "canvassing-client/api";

export const roles = [
  ["sales", "Sales representative"],
  ["admin", "Administrator"],
  ["owner", "Owner"],
] as const;

export const permissions = [
  ["canViewAllProspects", "Sees all prospects"],
  ["canManageProspects", "Imports and assigns prospects"],
] as const;

const names: ReadonlyMap<string, string> = new Map([...roles, ...permissions]);
export const labelOf = (name: string): string => names.get(name) ?? name;

/** Admins and owners hold every permission. */
export const permissionsOf = ({ role, permissions: held }: Pick<User, "role" | "permissions">): string =>
  role === "sales" ? held.map(labelOf).join(", ") || "Own prospects only" : "All";
