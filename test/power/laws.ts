/** Runs the laws of conditional writes (interleaved.ts) for the verbs in company-verbs.ts and for the other verbs. */
import { afterAll, beforeAll, test } from "vitest";
import { laws as ofCompanies } from "./company-verbs.ts";
import { type Gaps, type Law, startInterleaving } from "./interleaved.ts";
import { laws as ofKeys } from "./key-verbs.ts";
import { laws as ofProspects } from "./prospect-verbs.ts";
import { laws as ofUsers } from "./user-verbs.ts";
import { laws as ofWebhooks } from "./webhook-verbs.ts";

export { ofCompanies };
/** All laws but those of company-verbs.ts. They take three quarters of the time of all laws, so `npm test` does not run them. */
export const otherLaws = { ...ofKeys, ...ofProspects, ...ofUsers, ...ofWebhooks };
export const laws = { ...otherLaws, ...ofCompanies };

export function testLaws(gaps: Gaps, chosen: Readonly<Record<string, Law>>): void {
  let started: Awaited<ReturnType<typeof startInterleaving>>;
  beforeAll(async () => {
    process.env.WEBHOOK_URL_POLICY = "local";
    // A law compares all rows of the table, so no other test may use this table.
    started = await startInterleaving();
  });
  afterAll(() => started.stop());
  for (const [name, law] of Object.entries(chosen)) test(name, () => law(started, gaps));
}
