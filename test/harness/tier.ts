/** Determines the size of expensive tests. TEST_SIZE=wide gives them the size of a release. */
import { inject } from "vitest";

type Tier = "short" | "wide";

declare module "vitest" {
  export interface ProvidedContext {
    readonly tier: Tier;
    /** The seed of all property tests in this run. */
    readonly seed: number;
  }
}

/** A test that calls this function must have the tag `sized`, because only these tests run at the size `wide` before a release. */
export const sized = <T>(sizes: Readonly<Record<Tier, T>>): T => sizes[inject("tier")];
