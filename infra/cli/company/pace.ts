/** Limits the read or write units that a command consumes per second, so that enough of the table's capacity remains for users. */
import { setTimeout as sleep } from "node:timers/promises";

export class Pace {
  readonly #unitsPerSecond: number;
  readonly #wait: (ms: number) => Promise<unknown>;
  #paidAt = 0;

  constructor(unitsPerSecond: number, wait: (ms: number) => Promise<unknown> = sleep) {
    this.#unitsPerSecond = unitsPerSecond;
    this.#wait = wait;
  }

  /** Waits until the average consumption is within the limit. `call` resolves with its result and the units that it has consumed. */
  async spend<T>(call: () => Promise<{ readonly result: T; readonly units: number }>): Promise<T> {
    const early = this.#paidAt - Date.now();
    if (early > 0) await this.#wait(early);
    const { result, units } = await call();
    this.#paidAt = Math.max(this.#paidAt, Date.now()) + (units * 1_000) / this.#unitsPerSecond;
    return result;
  }
}
