/** A device that applies the items of `GET /api/changes` to its copies of the records that its user may see. */
import { expect } from "vitest";
import type { ChangesPage, ChangeType } from "#shared/sync/changes/schema.ts";

interface Copy {
  readonly version: number;
  readonly data: Record<string, unknown>;
}

export class Device {
  readonly userId: number;
  readonly types: readonly ChangeType[];
  cursor: string | undefined;
  readonly #limits: readonly number[];
  #applied = 0;
  #copies = new Map<string, Copy>();

  /** @param limits the values of the parameter `limit`: one for each request in turn, and again from the first one after the last */
  constructor(userId: number, types: readonly ChangeType[], limits: readonly number[]) {
    this.userId = userId;
    this.types = types;
    this.#limits = limits;
  }

  /** Maximum number of items in the next page. */
  get limit(): number {
    return this.#limits[this.#applied % this.#limits.length] ?? 0;
  }

  apply({ items, cursor }: ChangesPage): void {
    this.cursor = cursor;
    this.#applied++;
    for (const { type, id, version, op, data } of items) {
      const name = `${type} ${id}`;
      const copy = this.#copies.get(name);
      if (copy !== undefined && version < copy.version) continue;
      // Two items with the same version must be equal. Otherwise a device could not know which item is newer.
      if (version === copy?.version) expect({ op, data }).toEqual({ op: "upsert", data: copy.data });
      // The device does not remember the version of a removed record.
      if (op === "upsert" && data !== undefined) this.#copies.set(name, { version, data });
      else this.#copies.delete(name);
    }
  }

  /** Deletes all copies and begins anew, because the service has refused the cursor. */
  reset(): void {
    this.cursor = undefined;
    this.#copies = new Map();
  }

  /** Returns the copies, each converted by `convert`. The keys of the map have the form `type id`. */
  copies<T>(convert: (type: ChangeType, data: Record<string, unknown>) => T): Map<string, T> {
    const found = new Map<string, T>();
    for (const type of this.types) {
      for (const [name, { data }] of this.#copies) {
        if (name.startsWith(`${type} `)) found.set(name, convert(type, data));
      }
    }
    return found;
  }
}
