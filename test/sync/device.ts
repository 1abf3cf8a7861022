/** A device that keeps copies of what its user may see, with the items of `GET /api/changes`. */
import { expect } from "vitest";
import type { ChangesPage, ChangeType } from "#shared/sync/changes/schema.ts";

interface Copy {
  readonly version: number;
  /** Undefined if the record was removed. Its version is kept, because pages may be repeated. */
  readonly data: Record<string, unknown> | undefined;
}

export class Device {
  readonly userId: number;
  readonly types: readonly ChangeType[];
  /** Maximum number of items of a page. */
  readonly limit: number;
  cursor: string | undefined;
  #copies = new Map<string, Copy>();

  constructor(userId: number, types: readonly ChangeType[], limit: number) {
    this.userId = userId;
    this.types = types;
    this.limit = limit;
  }

  apply({ items, cursor }: ChangesPage): void {
    this.cursor = cursor;
    for (const { type, id, version, op, data } of items) {
      const name = `${type} ${id}`;
      const copy = this.#copies.get(name);
      const next: Copy = { version, data: op === "upsert" ? data : undefined };
      if (copy !== undefined && version < copy.version) continue;
      // A device that gets two pages in the wrong order could not know which one is newer.
      if (version === copy?.version) expect(next).toEqual(copy);
      this.#copies.set(name, next);
    }
  }

  /** Begins anew, after the service has refused the cursor. */
  reset(): void {
    this.cursor = undefined;
    this.#copies = new Map();
  }

  /** Returns the copies by `type id`, each converted by `convert`. */
  copies<T>(convert: (type: ChangeType, data: Record<string, unknown>) => T): Map<string, T> {
    const found = new Map<string, T>();
    for (const type of this.types) {
      for (const [name, { data }] of this.#copies) {
        if (data !== undefined && name.startsWith(`${type} `)) found.set(name, convert(type, data));
      }
    }
    return found;
  }
}
