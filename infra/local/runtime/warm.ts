/** Limits the idle environments of all functions together. */
import { LRUCache } from "lru-cache";
import type { Environment } from "./environment.ts";

export interface Warmth {
  readonly idleMs: number;
  readonly most: number;
}

/** Lambda keeps idle environments for longer, but a developer's machine has less memory. Each environment needs about 30 MB. */
const STANDARD_WARMTH: Warmth = { idleMs: 2 * 60_000, most: 48 };

/** The idle environments of all functions. The value of each is the function that ends it. Delete an environment when it is used again. */
export type WarmEnvironments = LRUCache<Environment, () => void>;

/** Ends an environment that is idle for `idleMs`. If more than `most` are idle, ends the one that is idle for the longest time. */
export const warmEnvironments = ({ idleMs, most }: Warmth = STANDARD_WARMTH): WarmEnvironments =>
  new LRUCache({
    max: most,
    ttl: idleMs,
    ttlAutopurge: true,
    disposeAfter(end, _, reason) {
      if (reason !== "delete") end();
    },
  });
