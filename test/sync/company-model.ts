/**
 * A model of a company: its records in plain objects, and what each user's lists show of them. The tests of `GET /api/changes` compare the
 * copies of devices with this model. It shares no code with the service.
 */
import type { Caller } from "#shared/auth/caller.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";

export interface ProspectModel {
  name: string;
  assignee: number | null;
  status: number | null;
  tags: readonly number[];
  isDeleted: boolean;
}

export interface AppointmentModel {
  readonly prospect: number;
  title: string;
  startMs: number;
  isScheduled: boolean;
  readonly assignee: number;
}

/** What a user may do. The owner's rights never change. */
export type Rights = Pick<Caller, "role" | "permissions">;

export interface UserModel {
  name: string;
  rights: Rights;
  /** The time at which the invitation expires, in milliseconds since 1970. Undefined for a user who has signed in. */
  readonly invitedUntil?: number;
  isWithdrawn: boolean;
}

/** The rights of a new sales user. */
export const noRights: Rights = { role: "sales", permissions: [] };

export class CompanyModel {
  readonly prospects = new Map<number, ProspectModel>();
  readonly notes = new Map<number, { readonly prospect: number; body: string; readonly author: number }>();
  readonly appointments = new Map<number, AppointmentModel>();
  readonly territories = new Map<number, { name: string; assignee: number | null }>();
  readonly statuses = new Map<number, { value: string; isActive: boolean }>();
  readonly tags = new Map<number, { value: string }>();
  readonly users = new Map<number, UserModel>();

  seesAll(userId: number): boolean {
    const { role, permissions } = this.users.get(userId)?.rights ?? noRights;
    return role !== "sales" || permissions.includes("canViewAllProspects");
  }

  /** Returns the records of these types that the user's lists show at this time. The keys of the map have the form `type id`. */
  visible(userId: number, types: readonly ChangeType[], nowMs: number): Map<string, unknown> {
    const records = new Map<string, unknown>();
    for (const type of types) {
      for (const [id, record] of this.#recordsOf(type, userId, nowMs)) records.set(`${type} ${id}`, record);
    }
    return records;
  }

  #recordsOf(type: ChangeType, userId: number, nowMs: number): Iterable<readonly [number, unknown]> {
    const sees = (id: number): boolean => {
      const prospect = this.prospects.get(id);
      return prospect?.isDeleted === false && (this.seesAll(userId) || prospect.assignee === userId);
    };
    switch (type) {
      case "prospects":
        return [...this.prospects].filter(([id]) => sees(id)).map(([id, one]) => [id, this.#prospect(id, one, nowMs)]);
      case "notes":
        return [...this.notes]
          .filter(([, { prospect }]) => sees(prospect))
          .map(([id, { body, author }]) => [id, { body, author: this.#nameOf(author) }]);
      case "appointments":
        return [...this.appointments]
          .filter(([, { prospect }]) => sees(prospect))
          .map(([id, { title, startMs, isScheduled, assignee }]) => {
            return [id, { title, startMs, isScheduled, assignee: this.#nameOf(assignee) }];
          });
      case "users":
        return [...this.users].map(([id, user]) => [id, { name: user.name, invitation: invitationOf(user, nowMs) }]);
      default:
        return this[type];
    }
  }

  #prospect(id: number, { name, assignee, status, tags }: ProspectModel, nowMs: number) {
    const next = [...this.appointments]
      .filter(([, { prospect, isScheduled, startMs }]) => prospect === id && isScheduled && startMs >= nowMs)
      .sort(([a, { startMs: at }], [b, { startMs: bt }]) => at - bt || a - b)
      .map(([appointment]) => appointment)
      .at(0);
    return {
      name,
      assignee: this.#nameOf(assignee),
      status: status === null ? null : (this.statuses.get(status)?.value ?? null),
      tags: tags.flatMap((tag) => this.tags.get(tag)?.value ?? []),
      next: next ?? null,
    };
  }

  #nameOf(userId: number | null): string | null {
    return userId === null ? null : (this.users.get(userId)?.name ?? null);
  }
}

function invitationOf({ invitedUntil, isWithdrawn }: UserModel, nowMs: number): string {
  if (isWithdrawn) return "withdrawn";
  if (invitedUntil === undefined) return "accepted";
  return invitedUntil <= nowMs ? "expired" : "pending";
}

const readers: Readonly<Record<ChangeType, (data: Record<string, unknown>) => unknown>> = {
  prospects: ({ name, assignedTo, currentStatus, tags, appointments }) => ({
    name,
    assignee: nameIn(assignedTo),
    status: currentStatus === null ? null : Object(currentStatus).value,
    tags: listIn(tags).map(({ tag }) => Object(tag).value),
    next: listIn(appointments)[0]?.id ?? null,
  }),
  notes: ({ body, createdBy }) => ({ body, author: nameIn(createdBy) }),
  appointments: ({ title, startAt, status, assignedTo }) => ({
    ...{ title, startMs: Date.parse(String(startAt)), isScheduled: status === "scheduled" },
    assignee: nameIn(assignedTo),
  }),
  territories: ({ name, assignedToUserId: assignee }) => ({ name, assignee }),
  statuses: ({ value, isActive }) => ({ value, isActive }),
  tags: ({ value }) => ({ value }),
  users: ({ firstName: name, invitation }) => ({ name, invitation }),
};

const nameIn = (user: unknown): unknown => (user === null ? null : Object(user).firstName);
const listIn = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value : []);

/** Reduces the `data` of an item to the fields that the model contains. */
export const modelled = (type: ChangeType, data: Record<string, unknown>): unknown => readers[type](data);

export const callerOf = (model: CompanyModel, companyId: number, userId: number): Caller => ({
  companyId,
  userId,
  ...(model.users.get(userId)?.rights ?? noRights),
});
