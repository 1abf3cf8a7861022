/**
 * Checks that a user who sees only own prospects gets no id of a note or appointment that the user never saw. A user has seen a note or
 * appointment only if its prospect was assigned to the user at some time since the note or appointment was created.
 */
import { expect } from "vitest";
import * as limits from "#shared/limits.ts";
import type { ChangesPage } from "#shared/sync/changes/schema.ts";
import type { CompanyModel } from "./company-model.ts";

interface Record {
  readonly prospect: number;
  /**
   * Milliseconds since 1970, not later than the creation of the record. A time that is too early can hide a fault, but reports no wrong
   * one.
   */
  readonly madeMs: number;
}

export class Sight {
  /**
   * For each prospect, the users who have ever been its assignee, each with a time in milliseconds since 1970. The last assignment of a
   * former assignee ended at this time or earlier. For the present assignee, it is the time of the last call of `learn`.
   */
  readonly #assignees = new Map<number, Map<number, number>>();
  readonly #records = new Map<number, Record>();
  #current = new Map<number, number | null>();
  #items: { readonly userId: number; readonly id: number }[] = [];
  #beginMs = 0;

  /** Remembers the notes and appointments of a page. `learn` checks them when all writes that ran at the same time have ended. */
  note(userId: number, { items }: ChangesPage): void {
    const attached = items.filter(({ type }) => type === "notes" || type === "appointments");
    this.#items.push(...attached.map(({ id }) => ({ userId, id })));
  }

  /** Learns the present state of the company, and checks the pages since the last call. */
  learn({ prospects, notes, appointments }: CompanyModel, nowMs: number): void {
    for (const [id, { assignee }] of prospects) {
      const assignees = this.#assignees.get(id) ?? new Map<number, number>();
      this.#assignees.set(id, assignees);
      for (const user of [this.#current.get(id) ?? null, assignee]) if (user !== null) assignees.set(user, nowMs);
    }
    this.#current = new Map([...prospects].map(([id, { assignee }]) => [id, assignee]));
    for (const [id, { prospect }] of [...notes, ...appointments]) {
      if (!this.#records.has(id)) this.#records.set(id, { prospect, madeMs: this.#beginMs });
    }
    for (const { userId, id } of this.#items) {
      const { prospect = 0, madeMs = 0 } = this.#records.get(id) ?? {};
      const untilMs = this.#assignees.get(prospect)?.get(userId) ?? 0;
      const message = `record ${id} of prospect ${prospect}, made ${madeMs}, in the feed of user ${userId}`;
      expect(untilMs, message).toBeGreaterThanOrEqual(madeMs - limits.clockDifferenceMs);
    }
    this.#items = [];
    this.#beginMs = nowMs;
  }
}
