/** Holds the queue of a company's bulk jobs, so that a test can change a waiting job before it begins, however fast the service is. */
import { contextOn } from "#shared/context.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";
import { startJob } from "../harness/verbs.ts";
import { at, type Client } from "./client.ts";
import { dataOf } from "./shapes.ts";
import { openLocalTable } from "./team.ts";

/** The held job is due after this time, in milliseconds, when the tests have ended. The sweeper would begin a job that is due earlier. */
const DUE_IN_MS = 86_400_000;

/** Puts a bulk job that nothing begins into the company's empty queue. All later jobs of the company wait until `release` is called. */
export async function holdQueue(owner: Client) {
  const { user, company } = dataOf(await owner.GET("/api/me"));
  const context = contextOn(await openLocalTable(), { now: () => Date.now() + DUE_IN_MS });
  const caller = { companyId: company.id, userId: user.id, role: "owner", permissions: [] } as const;
  const names = await currentDictionary(context, company.id);
  const id = await context.ids.next();
  const job = { id, kind: "prospect_bulk", events: "none", total: 1, chunks: 1, action: { statusId: null } } as const;
  const { state } = await startJob({ ...context, jobs: { send: async () => undefined } }, caller, names, job);
  if (state !== "queued") throw new Error(`the job of the test is ${state}`);
  /** Cancels the job, so that the next one begins. */
  const release = async (): Promise<void> => void dataOf(await owner.POST("/api/jobs/{id}/cancel", at(id)));
  return { id, release };
}
