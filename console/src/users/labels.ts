/** Names of roles and permissions. A role or permission of a later release has no name here. */
export const roleLabels: Readonly<Record<string, string>> = {
  sales: "Sales representative",
  admin: "Administrator",
  owner: "Owner",
};

export const permissionLabels: Readonly<Record<string, string>> = {
  canViewAllProspects: "Sees all prospects",
  canManageProspects: "Imports and assigns prospects",
};

export const roles = ["sales", "admin", "owner"] as const;
export const permissions = ["canViewAllProspects", "canManageProspects"] as const;
