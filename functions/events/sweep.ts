/** The sweeper, which runs every minute. It also mails notices about API keys to admins. */
import { allEnded } from "#shared/all-ended.ts";
import { openMail } from "#shared/aws/ses.ts";
import { openJobQueues } from "#shared/aws/sqs.ts";
import { sweepFlushRequests } from "#shared/company-index/write/flush-stream.ts";
import { oncePerInstance } from "#shared/instance.ts";
import { sweepJobs } from "#shared/jobs/job.ts";
import { log } from "#shared/log.ts";
import { sweepKeyNotices } from "#shared/reference/key-notices.ts";
import { eventContext } from "#shared/webhooks/context.ts";
import { SweepInput, sweep } from "#shared/webhooks/reconcile/sweep.ts";

const jobs = openJobQueues();
const sender = /* @__PURE__ */ oncePerInstance(() => ({ mail: openMail() }));

export const handler = async (
  input: unknown,
): Promise<{ queued: number; jobs: number; flushes: number; notices: number }> => {
  const { table, clock } = eventContext();
  const [queued = 0, sent = 0, flushes = 0, notices = 0] = await allEnded([
    sweep(eventContext(), SweepInput.parse(input)),
    sweepJobs({ table, clock, jobs }),
    sweepFlushRequests({ table, clock }),
    sweepKeyNotices({ table, clock, ...sender() }),
  ]);
  if (queued + sent > 0) log.warn("queued again", { queued, jobs: sent });
  return { queued, jobs: sent, flushes, notices };
};
