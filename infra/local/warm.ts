/** Environments of all functions that wait for work: those that have waited longest make room, and none waits for ever. */
import { totalmem } from "node:os";
import type { Environment } from "./environment.ts";

/** Lambda keeps an idle environment for minutes; memory on one machine is dearer. */
const IDLE_MS = 2 * 60_000;
/** Of an idle environment. */
const TYPICAL_BYTES = 30_000_000;
/** Idle environments at once: an eighth of this machine's memory, and not more than all functions with some to spare. */
const MAX_IDLE = Math.max(24, Math.min(96, Math.floor(totalmem() / 8 / TYPICAL_BYTES)));
const LOOK_MS = 10_000;

interface Idle {
  readonly since: number;
  readonly reap: () => void;
}

export class WarmEnvironments {
  /** In the order in which they became idle. */
  readonly #idle = new Map<Environment, Idle>();
  readonly #timer = setInterval(() => this.#reap(Date.now() - IDLE_MS), LOOK_MS).unref();

  /** `reap` is called when the environment has to go; it is not idle any more then. */
  add(environment: Environment, reap: () => void): void {
    this.#idle.set(environment, { since: Date.now(), reap });
    if (this.#idle.size > MAX_IDLE) this.#reapFirst();
  }

  remove(environment: Environment): void {
    this.#idle.delete(environment);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#idle.clear();
  }

  #reap(idleSince: number): void {
    for (const { since } of this.#idle.values()) {
      if (since > idleSince) return;
      this.#reapFirst();
    }
  }

  #reapFirst(): void {
    const [first] = this.#idle;
    if (first === undefined) return;
    this.#idle.delete(first[0]);
    first[1].reap();
  }
}
