/** The tier that a test runs in: `npm test` and `test:deep` state a law at a size that can still fail, `test:wide` at its whole size. */
import { inject } from "vitest";

type Tier = "short" | "wide";

declare module "vitest" {
  export interface ProvidedContext {
    readonly tier: Tier;
  }
}

/** How often, or how much, in the tier that runs. What asks for it has the tag `sized`: the wide tier runs nothing else. */
export const sized = (sizes: Readonly<Record<Tier, number>>): number => sizes[inject("tier")];
