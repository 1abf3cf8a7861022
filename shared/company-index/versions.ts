/**
 * Which version of a record is the newest that any run or unflushed entry has: whatever is older is dead, wherever it
 * stands. Open addressing in typed arrays: a million records take 26 MB.
 */

const EMPTY = 0;

export class NewestVersions {
  #ids = new Float64Array(64);
  #versions = new Float64Array(64);
  #ages = new Uint32Array(64);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** `age` orders runs: the later one is the higher one, and holds where versions are equal. */
  add(id: number, version: number, age: number): void {
    if (this.#size * 2 >= this.#ids.length) this.#grow();
    const slot = this.#slotOf(id);
    if (this.#ids[slot] === EMPTY) {
      this.#ids[slot] = id;
      this.#size++;
    } else if (!isOlder(this.#versions[slot] ?? 0, this.#ages[slot] ?? 0, version, age)) {
      return;
    }
    this.#versions[slot] = version;
    this.#ages[slot] = age;
  }

  /** A newer one is known than the one of this version in the run of this age. */
  supersedes(id: number, version: number, age: number): boolean {
    const slot = this.#slotOf(id);
    return this.#ids[slot] === id && isOlder(version, age, this.#versions[slot] ?? 0, this.#ages[slot] ?? 0);
  }

  /** The newest one of the record; 0 where none is known. */
  versionOf(id: number): number {
    const slot = this.#slotOf(id);
    return this.#ids[slot] === id ? (this.#versions[slot] ?? 0) : 0;
  }

  *[Symbol.iterator](): Generator<{ id: number; version: number; age: number }> {
    for (const [slot, id] of this.#ids.entries()) {
      if (id !== EMPTY) yield { id, version: this.#versions[slot] ?? 0, age: this.#ages[slot] ?? 0 };
    }
  }

  #slotOf(id: number): number {
    const mask = this.#ids.length - 1;
    // Multiplicative hashing of both halves: neighbouring ids must not fill neighbouring slots.
    let slot = (Math.imul(id % 0x100000000, 0x9e3779b1) ^ Math.imul(id / 0x100000000, 0x85ebca6b)) >>> 7;
    for (slot &= mask; this.#ids[slot] !== EMPTY && this.#ids[slot] !== id; slot = (slot + 1) & mask);
    return slot;
  }

  #grow(): void {
    const [ids, versions, ages] = [this.#ids, this.#versions, this.#ages];
    this.#ids = new Float64Array(ids.length * 2);
    this.#versions = new Float64Array(ids.length * 2);
    this.#ages = new Uint32Array(ids.length * 2);
    for (const [old, id] of ids.entries()) {
      if (id === EMPTY) continue;
      const slot = this.#slotOf(id);
      this.#ids[slot] = id;
      this.#versions[slot] = versions[old] ?? 0;
      this.#ages[slot] = ages[old] ?? 0;
    }
  }
}

const isOlder = (version: number, age: number, thanVersion: number, thanAge: number): boolean =>
  version < thanVersion || (version === thanVersion && age < thanAge);
