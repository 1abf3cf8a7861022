/** Names of roles and permissions. */
export const roleLabels = { sales: "Sales representative", admin: "Administrator", owner: "Owner" } as const;

export const permissionLabels = {
  canViewAllProspects: "Sees all prospects",
  canManageProspects: "Imports and assigns prospects",
} as const;

export const roles = ["sales", "admin", "owner"] as const;
export const permissions = ["canViewAllProspects", "canManageProspects"] as const;
