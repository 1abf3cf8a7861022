/** Limits the idle environments of all functions together. */
import type { Environment } from "./environment.ts";

/** Limits how long environments stay idle after an invocation, and how many may be idle. */
export interface Warmth {
  readonly idleMs: number;
  readonly most: number;
}

/**
 * Lambda keeps idle environments for longer than two minutes. A developer's machine has less memory, so idle environments end earlier here.
 * Each has about 30 MB.
 */
const STANDARD_WARMTH: Warmth = { idleMs: 2 * 60_000, most: 48 };
const CHECK_MS = 10_000;

interface Idle {
  readonly since: number;
  readonly reap: () => void;
}

/**
 * The idle environments of all functions. An environment is ended after it has been idle for `idleMs`. If there are more than `most`, the
 * environment that has been idle for the longest time is ended.
 */
export class WarmEnvironments {
  readonly #idle = new Map<Environment, Idle>();
  readonly #timer: NodeJS.Timeout;
  readonly #most: number;

  constructor({ idleMs, most }: Warmth = STANDARD_WARMTH) {
    this.#most = most;
    this.#timer = setInterval(() => this.#reap(Date.now() - idleMs), CHECK_MS).unref();
  }

  /** @param reap ends the environment. It is called after the environment has been removed from the idle environments. */
  add(environment: Environment, reap: () => void): void {
    this.#idle.set(environment, { since: Date.now(), reap });
    if (this.#idle.size > this.#most) this.#reapFirst();
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
