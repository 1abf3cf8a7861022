/** Makes random writes to a company, for tests of what reads show after any writes. */
import fc from "fast-check";
import type { Caller } from "#shared/auth/caller.ts";
import { rebuild } from "#shared/company-index/repair/rebuild.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import type { ApiContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import {
  createAppointment,
  createNote,
  createProspect,
  createStatus,
  createTag,
  deleteAppointment,
  deleteNote,
  deleteProspect,
  setTags,
  updateAddress,
  updateAppointment,
  updateNote,
  updateProspect,
  updateStatus,
  updateTag,
  updateUser,
} from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";

const PLACE = { address1: "1 Pearl St", city: "Denver", state: "CO", zip: "80203" };
const MINUTE_MS = 60_000;

/** The random numbers of a step. They determine the write and its values, the reader and the question, and how much time passes. */
export const Step = fc.record({
  write: fc.nat(99),
  seed: fc.nat(999),
  reader: fc.nat(999),
  question: fc.nat(999),
  minutes: fc.constantFrom(0, 0, 0, 1, 2, 30),
});

/** Makes random writes to one company. Each method ends after its write is committed. */
export class RandomWrites {
  readonly context: ApiContext;
  readonly owner: Caller;
  readonly repId: number;
  readonly prospectIds: number[] = [];
  readonly #noteIds: number[] = [];
  readonly #appointmentIds: number[] = [];
  readonly #addressIds: number[] = [];
  readonly #statusIds: number[] = [];
  readonly #tagIds: number[] = [];
  #count = 0;

  private constructor(context: ApiContext, { caller, repId }: Company) {
    this.context = context;
    this.owner = caller;
    this.repId = repId;
  }

  /** Creates a company with statuses, tags and three prospects. */
  static async begin(context: ApiContext): Promise<RandomWrites> {
    const writes = new RandomWrites(context, await newCompany(context));
    const { companyId } = writes.owner;
    for (const value of ["Open", "Closed"])
      writes.#statusIds.push((await createStatus(context, companyId, { value })).id);
    for (const value of ["Hail", "Solar"]) writes.#tagIds.push((await createTag(context, companyId, { value })).id);
    for (let i = 0; i < 3; i++) await writes.create(i);
    return writes;
  }

  /** The owner, the rep, and the rep with the right to see all prospects. */
  callers(): Caller[] {
    const { owner, repId } = this;
    return [
      owner,
      { ...owner, userId: repId, role: "sales" },
      { ...owner, userId: repId, role: "sales", permissions: ["canViewAllProspects"] },
    ];
  }

  async create(seed: number): Promise<void> {
    const { id, address } = await createProspect(this.context, this.owner, {
      name: `n${this.#count++}`,
      ...(seed % 5 > 0 && { lat: 39.7, lng: -105 }),
      currentStatusId: of(this.#statusIds, seed),
      assignedToUserId: seed % 2 === 0 ? this.repId : null,
      ...(seed % 3 === 0 && { address: PLACE }),
    });
    this.prospectIds.push(id);
    if (address !== null) this.#addressIds.push(address.id);
  }

  /** Makes the write that `kind` chooses. A write to a record that no longer exists does nothing. */
  async write(kind: number, seed: number): Promise<void> {
    const { context, owner } = this;
    const id = of(this.prospectIds, seed);
    const text = `t${this.#count++}`;
    const color = `#${(0x100000 + this.#count).toString(16).toUpperCase()}`;
    const startAt = new Date(context.clock.now() + (1 + (seed % 50)) * MINUTE_MS).toISOString();
    const writes: (() => Promise<unknown>)[] = [
      () => updateProspect(context, owner, id, { name: text }),
      () => updateProspect(context, owner, id, { currentStatusId: of(this.#statusIds, seed) }),
      () => updateProspect(context, owner, id, { assignedToUserId: seed % 2 === 0 ? this.repId : null }),
      () => this.create(seed),
      async () => this.#noteIds.push((await createNote(context, owner, id, { body: text })).id),
      () => updateNote(context, owner, of(this.#noteIds, seed), { body: text }),
      () => deleteNote(context, owner, of(this.#noteIds, seed)),
      async () =>
        this.#appointmentIds.push((await createAppointment(context, owner, id, appointment(text, startAt))).id),
      () => updateAppointment(context, owner, of(this.#appointmentIds, seed), { title: text, startAt }),
      () => deleteAppointment(context, owner, of(this.#appointmentIds, seed)),
      () => updateStatus(context, owner.companyId, of(this.#statusIds, seed), { color }),
      () => updateTag(context, owner.companyId, of(this.#tagIds, seed), { value: text }),
      () => setTags(context, owner, id, { tagIds: [of(this.#tagIds, seed)] }),
      () => updateUser(context, owner, this.repId, { firstName: text }),
      () => updateAddress(context, owner, of(this.#addressIds, seed), { address1: text }),
      () => deleteProspect(context, owner, id),
      () => flush(context, owner.companyId, { least: 1, settleMs: 0 }),
      () => rebuild(context, indexRecords(context.table), owner.companyId, { settleMs: 0 }),
    ];
    try {
      await of(writes, kind)();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }
}

export const appointment = (title: string, startAt: string) => ({
  title,
  startAt,
  endAt: null,
  allDay: false,
  location: null,
  notes: null,
});

export function of<T>(list: readonly T[], seed: number): T {
  const found = list[seed % Math.max(1, list.length)];
  // The company has no record of this kind, so the write fails like a write to an unknown id.
  if (found === undefined) throw new ApiError("not_found", "none");
  return found;
}
