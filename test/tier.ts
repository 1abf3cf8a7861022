/** The tier that a test runs in: `npm test` states a law at a small size, `npm run test:long` repeats it at a large one. */
import { inject } from "vitest";

type Tier = "short" | "long";

declare module "vitest" {
  export interface ProvidedContext {
    readonly tier: Tier;
  }
}

/** How often, or how much, in the tier that runs. */
export const sized = (sizes: Readonly<Record<Tier, number>>): number => sizes[inject("tier")];
