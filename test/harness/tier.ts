/**
 * Sets the size of expensive tests by the test command. `npm test` and `npm run test:deep` use a small size that can still find a fault,
 * and `npm run test:wide` uses the full size.
 */
import { inject } from "vitest";

type Tier = "short" | "wide";

declare module "vitest" {
  export interface ProvidedContext {
    readonly tier: Tier;
    /** Chooses the part of the expensive tests that this run executes. A run prints it, and `TEST_DRAW` repeats the run. */
    readonly draw: number;
  }
}

/**
 * Returns the size for the current test command. A test that calls this function needs the tag `sized`, because `npm run test:wide` runs
 * only tests with this tag.
 */
export const sized = <T>(sizes: Readonly<Record<Tier, T>>): T => sizes[inject("tier")];
