/** Gives property tests the seed of the run, and waits after each test until Node.js has reported its rejected promises. */
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, inject } from "vitest";

// `turn` is imported from `node:timers/promises`, because a test may have replaced the global timers.
afterEach(() => turn());
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: inject("seed") });
