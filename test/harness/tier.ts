/**
 * The test tier. `npm test` and `test:deep` (short tier) run a test at a size that can still fail, `test:wide` (wide tier) at its full
 * size.
 */
import { inject } from "vitest";

type Tier = "short" | "wide";

declare module "vitest" {
  export interface ProvidedContext {
    readonly tier: Tier;
  }
}

/**
 * The number of runs, or the size, for the current tier. A test that uses this function needs the tag `sized`, because the wide tier runs
 * only tests with this tag.
 */
export const sized = (sizes: Readonly<Record<Tier, number>>): number => sizes[inject("tier")];
