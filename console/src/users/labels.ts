/** Names of roles and permissions. A role or permission of a later release has no name here. */
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
