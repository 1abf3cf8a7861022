/** Makes writes of all kinds to a company through the service, and notes in the model which records exist. */
import type { Caller } from "#shared/auth/caller.ts";
import { rebuild } from "#shared/company-index/repair/rebuild.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { indexNotesAgain, writeByJob } from "#shared/prospects/bulk-write.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import * as verbs from "../harness/verbs.ts";
import {
  type AttachedModel,
  type CompanyModel,
  callerOf,
  noRights,
  type ProspectModel,
  type Rights,
} from "./company-model.ts";
import { importProspects } from "./imported.ts";

const HOUR_MS = 3_600_000;
const PLACE = { address1: "1 Pearl St", city: "Denver", state: "CO", zip: "80203" };

/** A random number that chooses a value from a list. The same number always chooses the same value from the same list. */
type Choice = number;

const chosen = <T>(from: readonly T[], choice: Choice): T | undefined => from[choice % Math.max(1, from.length)];

/** Error codes that a write may get because another write was made at the same time. */
const refusals: readonly string[] = ["not_found", "validation_failed", "conflict"];

function isRefusal(error: unknown): boolean {
  // A rebuild that runs at the same time as another rebuild, a merge or an import is refused and changes nothing.
  if (error instanceof Error && error.name === "RebuildRefused") return true;
  return error instanceof ConditionFailed || (error instanceof ApiError && refusals.includes(error.code));
}

const allRights: readonly Rights[] = [
  noRights,
  { role: "sales", permissions: ["canViewAllProspects"] },
  { role: "sales", permissions: ["canManageProspects"] },
  { role: "sales", permissions: ["canViewAllProspects", "canManageProspects"] },
  { role: "admin", permissions: [] },
];

export class CompanyWrites {
  readonly #context: ApiContext;
  readonly #owner: Caller;
  readonly #reps: readonly number[];
  readonly #model: CompanyModel;
  readonly #identities = memoryIdentities();
  readonly #busy = new Set<string>();
  #names = 0;

  constructor(context: ApiContext, owner: Caller, reps: readonly number[], model: CompanyModel) {
    this.#context = context;
    this.#owner = owner;
    this.#reps = reps;
    this.#model = model;
    this.#model.users.set(owner.userId, { rights: owner, isWithdrawn: false });
    for (const id of reps) this.#model.users.set(id, { rights: noRights, isWithdrawn: false });
  }

  /** Makes a write. Unless `isAlone` is true, the service may refuse the write, because other writes run at the same time. */
  async make(kind: WriteKind, a: Choice, b: Choice, isAlone: boolean): Promise<void> {
    await this[kind](a, b).catch((error: unknown) => {
      if (isAlone || !isRefusal(error)) throw error;
    });
  }

  /** Lets new writes change every record again. Call it only when all earlier writes have ended. */
  release(): void {
    this.#busy.clear();
  }

  /** Makes a write to a record that no other running write changes, if there is such a record. */
  async #change<T>(
    kind: string,
    records: Iterable<readonly [number, T]>,
    choice: Choice,
    write: (id: number, record: T) => Promise<unknown>,
  ): Promise<void> {
    const free = [...records].filter(([id]) => !this.#busy.has(`${kind} ${id}`));
    const found = chosen(free, choice);
    if (found === undefined) return;
    this.#busy.add(`${kind} ${found[0]}`);
    await write(...found);
  }

  #live = () => [...this.#model.prospects].filter(([, { isDeleted }]) => !isDeleted);

  #changeLive = (choice: Choice, write: (id: number, record: ProspectModel) => Promise<unknown>) =>
    this.#change("prospect", this.#live(), choice, write);

  #assigneeAt = (choice: Choice): number | null => chosen([null, ...this.#reps], choice) ?? null;

  #name = (prefix: string): string => `${prefix}${this.#names++}`;

  /** Returns the user who makes a write. `choice` selects the owner, or the prospect's assignee if it has one. */
  #writerOf(prospect: number, choice: Choice): Caller {
    const assignee = this.#model.prospects.get(prospect)?.assignee ?? this.#owner.userId;
    const userId = choice % 2 === 0 ? this.#owner.userId : assignee;
    return callerOf(this.#model, this.#owner.companyId, userId);
  }

  /** Most times are between two hours ago and two days ahead. One in three is up to three months ahead. */
  #startAt(choice: Choice): string {
    const hours = choice % 3 === 0 ? 24 * (choice % 90) : (choice % 50) - 2;
    return new Date(this.#context.clock.now() + hours * HOUR_MS + (choice % 3) * 1_000).toISOString();
  }

  async create(_: Choice, b: Choice): Promise<void> {
    const [name, assignee] = [this.#name("p"), this.#assigneeAt(b)];
    const { id, address } = await verbs.createProspect(this.#context, this.#owner, {
      ...{ name, assignedToUserId: assignee },
      ...(b % 3 > 0 && { lat: 39.7, lng: -105 }),
      ...(b % 2 === 1 && { address: PLACE }),
    });
    this.#model.prospects.set(id, { assignee, isDeleted: false, addressId: address?.id });
  }

  changeAddress(a: Choice): Promise<void> {
    const withAddress = this.#live().filter(([, { addressId }]) => addressId !== undefined);
    return this.#change("prospect", withAddress, a, (_, { addressId = 0 }) =>
      verbs.updateAddress(this.#context, this.#owner, addressId, { address1: this.#name("street ") }),
    );
  }

  rename = (a: Choice): Promise<void> =>
    this.#changeLive(a, (id) => verbs.updateProspect(this.#context, this.#owner, id, { name: this.#name("r") }));

  assign = (a: Choice, b: Choice): Promise<void> =>
    this.#changeLive(a, async (id, record) => {
      const assignee = this.#assigneeAt(b);
      await verbs.updateProspect(this.#context, this.#owner, id, { assignedToUserId: assignee });
      record.assignee = assignee;
    });

  setStatus = (a: Choice, b: Choice): Promise<void> =>
    this.#changeLive(a, async (id) => {
      const active = [...this.#model.statuses].filter(([, { isActive }]) => isActive).map(([status]) => status);
      const status = chosen([null, ...active], b) ?? null;
      await verbs.updateProspect(this.#context, this.#owner, id, { currentStatusId: status });
    });

  tag = (a: Choice, b: Choice): Promise<void> =>
    this.#changeLive(a, async (id) => {
      const tagIds = [...this.#model.tags].filter((_, i) => ((b >> i) & 1) === 1);
      await verbs.setTags(this.#context, this.#owner, id, { tagIds });
    });

  hide = (a: Choice): Promise<void> =>
    this.#changeLive(a, async (id, record) => {
      await verbs.deleteProspect(this.#context, this.#owner, id);
      record.isDeleted = true;
    });

  /** Restores a deleted prospect, as the undo of a bulk job does. */
  restore(a: Choice): Promise<void> {
    const deleted = [...this.#model.prospects].filter(([, { isDeleted }]) => isDeleted);
    return this.#change("prospect", deleted, a, async (id, record) => {
      const { companyId } = this.#owner;
      const item = await this.#context.table.get(keys.prospect(companyId, id));
      if (item === undefined) throw new Error(`prospect ${id} has no row`);
      const dictionary = await freshDictionary(this.#context, companyId);
      const job = { jobId: 1, events: "none" } as const;
      const write = { after: { deletedAt: null }, job, dictionary };
      await writeByJob(this.#context, this.#owner, storedProspect(item), write);
      await indexNotesAgain(this.#context.table, companyId, id);
      record.isDeleted = false;
    });
  }

  async note(a: Choice, b: Choice): Promise<void> {
    const [prospect] = chosen(this.#live(), a) ?? [];
    if (prospect === undefined) return;
    const body = this.#name("note ");
    const { id } = await verbs.createNote(this.#context, this.#writerOf(prospect, b), prospect, { body });
    this.#model.notes.set(id, { prospect });
  }

  #visible = (all: ReadonlyMap<number, AttachedModel>) =>
    [...all].filter(([, { prospect }]) => this.#model.prospects.get(prospect)?.isDeleted === false);

  editNote = (a: Choice, b: Choice): Promise<void> =>
    this.#change("note", this.#visible(this.#model.notes), a, (id, { prospect }) =>
      verbs.updateNote(this.#context, this.#writerOf(prospect, b), id, { body: this.#name("edited ") }),
    );

  dropNote = (a: Choice, b: Choice): Promise<void> =>
    this.#change("note", this.#visible(this.#model.notes), a, async (id, record) => {
      await verbs.deleteNote(this.#context, this.#writerOf(record.prospect, b), id);
      this.#model.notes.delete(id);
    });

  async meet(a: Choice, b: Choice): Promise<void> {
    const [prospect] = chosen(this.#live(), a) ?? [];
    if (prospect === undefined) return;
    const [title, assignedToUserId] = [this.#name("visit "), this.#assigneeAt(b) ?? this.#owner.userId];
    const input = { title, startAt: this.#startAt(b), assignedToUserId };
    const { id } = await verbs.createAppointment(this.#context, this.#writerOf(prospect, a), prospect, input);
    this.#model.appointments.set(id, { prospect });
  }

  move = (a: Choice, b: Choice): Promise<void> =>
    this.#change("appointment", this.#visible(this.#model.appointments), a, async (id, record) => {
      const [title, status] = [this.#name("moved "), b % 4 === 0 ? "completed" : "scheduled"] as const;
      const patch = { title, startAt: this.#startAt(b), status };
      await verbs.updateAppointment(this.#context, this.#writerOf(record.prospect, b), id, patch);
    });

  cancel = (a: Choice, b: Choice): Promise<void> =>
    this.#change("appointment", this.#visible(this.#model.appointments), a, async (id, record) => {
      await verbs.deleteAppointment(this.#context, this.#writerOf(record.prospect, b), id);
      this.#model.appointments.delete(id);
    });

  async newTerritory(_: Choice, b: Choice): Promise<void> {
    const input = { name: this.#name("area "), totalProperties: 0, assignedToUserId: this.#assigneeAt(b) };
    const { id } = await verbs.createTerritory(this.#context, this.#owner, input);
    this.#model.territories.add(id);
  }

  changeTerritory = (a: Choice, b: Choice): Promise<void> =>
    this.#change("territory", this.#model.territories.entries(), a, async (id) => {
      const patch = { name: this.#name("zone "), assignedToUserId: this.#assigneeAt(b) };
      await verbs.updateTerritory(this.#context, this.#owner, id, patch);
    });

  dropTerritory = (a: Choice): Promise<void> =>
    this.#change("territory", this.#model.territories.entries(), a, async (id) => {
      await verbs.deleteTerritory(this.#context, this.#owner, id);
      this.#model.territories.delete(id);
    });

  async newStatus(): Promise<void> {
    const { id } = await verbs.createStatus(this.#context, this.#owner.companyId, { value: this.#name("status ") });
    this.#model.statuses.set(id, { isActive: true });
  }

  renameStatus = (a: Choice, b: Choice): Promise<void> =>
    this.#change("status", this.#model.statuses, a, async (id, record) => {
      const { companyId } = this.#owner;
      if (b % 4 === 0 && record.isActive) {
        await verbs.deactivateStatus(this.#context, companyId, id);
        record.isActive = false;
        return;
      }
      const patch =
        b % 2 === 0 ? { color: `#${String(this.#names++).padStart(6, "0")}` } : { value: this.#name("state ") };
      await verbs.updateStatus(this.#context, companyId, id, patch);
    });

  async newTag(): Promise<void> {
    const { id } = await verbs.createTag(this.#context, this.#owner.companyId, { value: this.#name("tag ") });
    this.#model.tags.add(id);
  }

  renameTag = (a: Choice): Promise<void> =>
    this.#change("tag", this.#model.tags.entries(), a, (id) =>
      verbs.updateTag(this.#context, this.#owner.companyId, id, { value: this.#name("label ") }),
    );

  dropTag = (a: Choice): Promise<void> =>
    this.#change("tag", this.#model.tags.entries(), a, async (id) => {
      await verbs.deleteTag(this.#context, this.#owner.companyId, id);
      this.#model.tags.delete(id);
    });

  async invite(): Promise<void> {
    const { companyId } = this.#owner;
    const name = this.#name("Invited ");
    const email = `${name.replace(" ", "-")}-of-${companyId}@x.test`;
    const user = await verbs.createUser(this.#context, this.#identities, this.#owner, {
      ...{ email, firstName: name, lastName: "B", role: "sales", permissions: [] },
    });
    const invitedUntil = Date.parse(user.createdAt) + limits.invitationMs;
    this.#model.users.set(user.id, { rights: noRights, invitedUntil, isWithdrawn: false });
  }

  withdraw(a: Choice): Promise<void> {
    const nowMs = this.#context.clock.now();
    const pending = [...this.#model.users].filter(
      ([, { invitedUntil = 0, isWithdrawn }]) => invitedUntil > nowMs && !isWithdrawn,
    );
    return this.#change("user", pending, a, async (id, record) => {
      await verbs.disableOrWithdraw(this.#context, this.#identities, this.#owner, id);
      record.isWithdrawn = true;
    });
  }

  /** Renames a user, mostly one who has signed in: no record shows the name of a user who was only invited. */
  renameUser(a: Choice, b: Choice): Promise<void> {
    const shown = [...this.#model.users].filter(([, { invitedUntil }]) => invitedUntil === undefined);
    return this.#change("user", b % 4 === 0 ? this.#model.users : shown, a, (id) =>
      verbs.updateUser(this.#context, this.#owner, id, { firstName: this.#name("Named ") }),
    );
  }

  changeRights(a: Choice, b: Choice): Promise<void> {
    const reps = [...this.#model.users].filter(([user]) => this.#reps.includes(user));
    return this.#change("user", reps, a, async (id, record) => {
      const { role, permissions } = chosen(allRights, b) ?? noRights;
      await verbs.updateUser(this.#context, this.#owner, id, { role, permissions: [...permissions] });
      record.rights = { role, permissions };
    });
  }

  async rebuildIndex(): Promise<void> {
    const { table } = this.#context;
    await rebuild(this.#context, indexRecords(table), this.#owner.companyId, { settleMs: 0 });
  }

  async import(a: Choice, b: Choice): Promise<void> {
    const assignees = Array.from({ length: 1 + (a % 7) }, (_, i) => this.#assigneeAt(b + i));
    const { prospects, notes } = await importProspects(this.#context, this.#owner, assignees);
    for (const { id, assignedToUserId: assignee } of prospects) {
      this.#model.prospects.set(id, { assignee, isDeleted: false });
    }
    for (const { id, prospectId: prospect } of notes) this.#model.notes.set(id, { prospect });
  }
}

export const writeWeights = {
  create: 6,
  changeAddress: 1,
  rename: 3,
  assign: 8,
  setStatus: 3,
  tag: 3,
  hide: 2,
  restore: 3,
  note: 5,
  editNote: 2,
  dropNote: 2,
  meet: 9,
  move: 3,
  cancel: 2,
  newTerritory: 1,
  changeTerritory: 1,
  dropTerritory: 1,
  newStatus: 1,
  renameStatus: 2,
  newTag: 2,
  renameTag: 2,
  dropTag: 1,
  invite: 3,
  withdraw: 1,
  renameUser: 4,
  changeRights: 1,
  rebuildIndex: 1,
  import: 2,
} as const;

export type WriteKind = keyof typeof writeWeights;
export const isWrite = (kind: string): kind is WriteKind => Object.hasOwn(writeWeights, kind);
