/**
 * Orders messages as the fair queues of SQS do: the next one is of the message group with the fewest messages in flight (being processed),
 * and among equal groups of the one that was served least recently.
 */
export class FairQueue<T> {
  readonly #groupOf: (message: T) => string;
  readonly #waiting = new Map<string, T[]>();
  readonly #inFlight = new Map<string, number>();

  constructor(groupOf: (message: T) => string) {
    this.#groupOf = groupOf;
  }

  push(message: T): void {
    const group = this.#groupOf(message);
    const waiting = this.#waiting.get(group);
    if (waiting === undefined) this.#waiting.set(group, [message]);
    else waiting.push(message);
  }

  /** Returns the next message. The message counts as in flight until `done` is called with it. */
  take(): T | undefined {
    const next = this.#nextGroup();
    if (next === undefined) return undefined;
    const [group, waiting] = next;
    const message = waiting.shift();
    this.#waiting.delete(group);
    if (waiting.length > 0) this.#waiting.set(group, waiting);
    this.#inFlight.set(group, this.#countOf(group) + 1);
    return message;
  }

  done(message: T): void {
    const group = this.#groupOf(message);
    const left = this.#countOf(group) - 1;
    if (left === 0) this.#inFlight.delete(group);
    else this.#inFlight.set(group, left);
  }

  #countOf(group: string): number {
    return this.#inFlight.get(group) ?? 0;
  }

  #nextGroup(): [string, T[]] | undefined {
    let next: [string, T[]] | undefined;
    for (const entry of this.#waiting) {
      if (next === undefined || this.#countOf(entry[0]) < this.#countOf(next[0])) next = entry;
    }
    return next;
  }
}
