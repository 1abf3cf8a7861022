/** Cancels an import: nobody completes it any more, and what it has written is removed when nobody writes it any more. */
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { ApiError } from "#shared/errors.ts";
import { findImport, summaryOf } from "#shared/jobs/import/read.ts";
import type { ImportSummary, StoredImport } from "#shared/jobs/import/schema.ts";

export const cancelImport = (context: ApiContext, companyId: number, id: number): Promise<ImportSummary> =>
  optimistic(async () => {
    const stored = await findImport(context, companyId, id);
    if (stored.state === "cancelled") return summaryOf(stored);
    if (stored.job === undefined || stored.state === "completed" || stored.state === "failed") {
      throw new ApiError("conflict", "The import is over, or came with its file in one request.");
    }
    const nowMs = context.clock.now();
    const set = { state: "cancelled", updatedAt: iso(nowMs), dueAt: iso(Math.max(nowMs, stored.runsUntil)) };
    const next: StoredImport = { ...stored, state: "cancelled", updatedAt: iso(nowMs) };
    const answer = summaryOf(next);
    await context.commit(
      [
        {
          update: keys.import(companyId, id),
          change: { set: { ...set, dueShard: keys.jobShard }, add: { version: 1 } },
          when: equals("version", stored.version),
        },
      ],
      answer,
    );
    return answer;
  });
