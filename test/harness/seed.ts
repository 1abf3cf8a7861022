/**
 * Gives all property tests the seed that the test run prints. Also waits after each test until Node.js has reported the rejected promises
 * that the test has left behind, so that the report names this test and not the next one.
 */
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, inject } from "vitest";

// `turn` is imported from `node:timers/promises`, because a test may have replaced the global timers.
afterEach(() => turn());
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: inject("seed") });
