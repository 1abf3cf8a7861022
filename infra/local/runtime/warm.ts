/** Limits the idle environments of all functions together. */
import { totalmem } from "node:os";
import type { Environment } from "./environment.ts";

/** Limits how long environments stay idle after an invocation, and how many may be idle. */
export interface Warmth {
  readonly idleMs: number;
  /** The share of this machine's memory that all idle environments together may use, from 0 to 1. */
  readonly memoryShare: number;
  /** The maximum number of idle environments, even if `memoryShare` allows more. But 24 may always be idle, even if the memory is small. */
  readonly most: number;
}

/**
 * Lambda keeps idle environments for longer than two minutes. A developer's machine has less memory, so idle environments end earlier here.
 */
const STANDARD_WARMTH: Warmth = { idleMs: 2 * 60_000, memoryShare: 1 / 8, most: 96 };
const TYPICAL_BYTES = 30_000_000;
const CHECK_MS = 10_000;

/** Returns the maximum number of idle environments of all functions together. */
const maxIdle = ({ memoryShare, most }: Warmth): number =>
  Math.max(24, Math.min(most, Math.floor((totalmem() * memoryShare) / TYPICAL_BYTES)));

interface Idle {
  readonly since: number;
  readonly reap: () => void;
}

/**
 * The idle environments of all functions. An environment is ended after it has been idle for `idleMs`. If there are more than `#max`, the
 * environment that has been idle for the longest time is ended.
 */
export class WarmEnvironments {
  readonly #idle = new Map<Environment, Idle>();
  readonly #timer: NodeJS.Timeout;
  readonly #max: number;

  constructor(warmth: Warmth = STANDARD_WARMTH) {
    this.#max = maxIdle(warmth);
    this.#timer = setInterval(() => this.#reap(Date.now() - warmth.idleMs), CHECK_MS).unref();
  }

  /** @param reap ends the environment. It is called after the environment has been removed from the idle environments. */
  add(environment: Environment, reap: () => void): void {
    this.#idle.set(environment, { since: Date.now(), reap });
    if (this.#idle.size > this.#max) this.#reapFirst();
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
