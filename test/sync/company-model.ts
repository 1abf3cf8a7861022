/** A model of a company. With it, tests choose writes that the service must accept, and changes-law.ts knows who has seen a prospect. */
import type { Caller } from "#shared/auth/caller.ts";

export interface ProspectModel {
  assignee: number | null;
  isDeleted: boolean;
  readonly addressId?: number | undefined;
}

export interface AttachedModel {
  readonly prospect: number;
}

/** What a user may do. The owner's rights never change. */
export type Rights = Pick<Caller, "role" | "permissions">;

export interface UserModel {
  rights: Rights;
  /** The time at which the invitation expires, in milliseconds since 1970. Undefined for a user who has signed in. */
  readonly invitedUntil?: number;
  isWithdrawn: boolean;
}

export const noRights: Rights = { role: "sales", permissions: [] };

export class CompanyModel {
  readonly prospects = new Map<number, ProspectModel>();
  readonly notes = new Map<number, AttachedModel>();
  readonly appointments = new Map<number, AttachedModel>();
  readonly territories = new Set<number>();
  readonly statuses = new Map<number, { isActive: boolean }>();
  readonly tags = new Set<number>();
  readonly users = new Map<number, UserModel>();

  seesAll(userId: number): boolean {
    const { role, permissions } = this.users.get(userId)?.rights ?? noRights;
    return role !== "sales" || permissions.includes("canViewAllProspects");
  }
}

export const callerOf = (model: CompanyModel, companyId: number, userId: number): Caller => ({
  companyId,
  userId,
  ...(model.users.get(userId)?.rights ?? noRights),
});
