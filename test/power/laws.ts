/** Runs the general law of conditional writes (interleaved.ts) for all verbs. */
import { afterAll, beforeAll, test } from "vitest";
import { laws as ofCompanies } from "./company-verbs.ts";
import { type Gaps, startInterleaving } from "./interleaved.ts";
import { laws as ofProspects } from "./prospect-verbs.ts";
import { laws as ofUsers } from "./user-verbs.ts";
import { laws as ofWebhooks } from "./webhook-verbs.ts";

export const laws = { ...ofProspects, ...ofCompanies, ...ofUsers, ...ofWebhooks };

export function testLaws(gaps: Gaps): void {
  let started: Awaited<ReturnType<typeof startInterleaving>>;
  beforeAll(async () => {
    process.env.WEBHOOK_URL_POLICY = "local";
    // The law reads the rows of the whole table, so it has its own.
    started = await startInterleaving();
  });
  afterAll(() => started.stop());
  for (const [name, law] of Object.entries(laws)) test(name, () => law.run(started, gaps, law.verbs));
}
