/** A device that applies the items of `GET /api/changes` to its copies of the records that its user may see. */
import { expect } from "vitest";
import { type ChangesPage, type ChangeType, CheckedType } from "#shared/sync/changes/schema.ts";

interface Copy {
  readonly version: number;
  readonly data: Record<string, unknown>;
}

/** The 64-bit FNV-1a hash, which the service uses for the checksums of `GET /api/changes`. */
export function fnv1a(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

export class Device {
  readonly userId: number;
  readonly types: readonly ChangeType[];
  cursor: string | undefined;
  readonly #limits: readonly number[];
  #applied = 0;
  #copies = new Map<string, Copy>();

  /** @param limits the values of the parameter `limit`, which the requests use in turn */
  constructor(userId: number, types: readonly ChangeType[], limits: readonly number[]) {
    this.userId = userId;
    this.types = types;
    this.#limits = limits;
  }

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

  checksums(): Record<string, string> {
    const checked = CheckedType.options.filter((type) => this.types.includes(type));
    return Object.fromEntries(checked.map((type) => [type, this.#checksum(type)]));
  }

  #checksum(type: CheckedType): string {
    let sum = 0n;
    for (const [name, { version }] of this.#copies) {
      const [own, id] = name.split(" ");
      if (own === type) sum ^= fnv1a(`${type}:${id}:${version}`);
    }
    return sum.toString(16).padStart(16, "0");
  }

  copyOf(name: string): Copy | undefined {
    return this.#copies.get(name);
  }

  /** Deletes all copies and the cursor, because the service has refused the cursor. The next request then asks for the first page. */
  reset(): void {
    this.cursor = undefined;
    this.#copies = new Map();
  }

  /** Returns the copies. The keys of the map have the form `type id`. */
  copies(): Map<string, Record<string, unknown>> {
    return new Map([...this.#copies].map(([name, { data }]) => [name, data]));
  }
}
