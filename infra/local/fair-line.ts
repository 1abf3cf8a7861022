/** Messages in line, fair to their groups as SQS is in standard queues: the group with the fewest messages in work comes first. */

export interface InLine {
  readonly group: string;
  readonly sinceMs: number;
}

export class FairLine<T extends InLine> {
  readonly #groups = new Map<string, T[]>();
  readonly #inWork = new Map<string, number>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** When the message came that is longest in line. */
  get oldestMs(): number {
    return Math.min(...[...this.#groups.values()].map(([first]) => first?.sinceMs ?? Number.POSITIVE_INFINITY));
  }

  push(message: T): void {
    const group = this.#groups.get(message.group);
    if (group === undefined) this.#groups.set(message.group, [message]);
    else group.push(message);
    this.#size++;
  }

  /** In work from here on, until `done` is told. Of groups alike, that of the message which is longest in line. */
  take(): T | undefined {
    let best: T[] | undefined;
    for (const group of this.#groups.values()) {
      if (best === undefined || isBefore(this.#rank(group), this.#rank(best))) best = group;
    }
    const message = best?.shift();
    if (message === undefined) return undefined;
    if (best?.length === 0) this.#groups.delete(message.group);
    this.#size--;
    this.#inWork.set(message.group, (this.#inWork.get(message.group) ?? 0) + 1);
    return message;
  }

  done({ group }: T): void {
    const left = (this.#inWork.get(group) ?? 1) - 1;
    if (left === 0) this.#inWork.delete(group);
    else this.#inWork.set(group, left);
  }

  #rank([first]: readonly T[]): readonly [number, number] {
    return [this.#inWork.get(first?.group ?? "") ?? 0, first?.sinceMs ?? 0];
  }
}

const isBefore = (a: readonly [number, number], b: readonly [number, number]): boolean =>
  a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
