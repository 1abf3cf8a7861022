/**
 * Determines the size of expensive tests from the test command. `npm test` and `npm run test:deep` use a small size that can still find a
 * fault. `npm run test:wide` uses the full size.
 */
import { inject } from "vitest";

type Tier = "short" | "wide";

declare module "vitest" {
  export interface ProvidedContext {
    readonly tier: Tier;
    /**
     * The number that determines which part of the expensive tests this run executes. Each run prints its number. If `TEST_DRAW` contains
     * this number, a later run executes the same part.
     */
    readonly draw: number;
  }
}

/**
 * Returns the size for the current test command. A test that calls this function must have the tag `sized`, because `npm run test:wide`
 * runs only tests with this tag.
 */
export const sized = <T>(sizes: Readonly<Record<Tier, T>>): T => sizes[inject("tier")];
