/** Tests that an execution without the lease of its job writes nothing to the job, and that a job without a queue message is executed. */
import { expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { JobContext } from "#shared/context.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { sweepJobs } from "#shared/jobs/job.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { beginExport } from "../harness/verbs.ts";
import { newStage, requestedJob, silent } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests("test");

const COUNT = 3;

interface Kind {
  readonly begin: (jobs: JobContext["jobs"]) => Promise<JobMessage>;
  readonly keyOf: (job: JobMessage) => Key;
}

const kinds: Record<JobMessage["kind"], Kind> = {
  import: {
    begin: async () => {
      const { caller } = await newStage(harness, 0);
      return harness.uploaded(caller, Buffer.from("name,tags\na,x\nb,y\n"));
    },
    keyOf: ({ companyId, id }) => keys.import(companyId, id),
  },
  export: {
    begin: async (jobs) => {
      const { caller } = await newStage(harness, COUNT);
      const { id } = await beginExport(harness.sound(), jobs, caller, {});
      return { kind: "export", companyId: caller.companyId, id };
    },
    keyOf: ({ companyId, id }) => keys.export(companyId, id),
  },
  bulk: {
    begin: async (jobs) => {
      const stage = await newStage(harness, COUNT);
      return requestedJob(harness.sound(), stage, { delete: true }, jobs);
    },
    keyOf: ({ companyId, id }) => keys.bulkJob(companyId, id),
  },
};

const table = Object.entries(kinds).map(([kind, steps]) => [`the ${kind}`, steps] as const);
const rowAt = (key: Key) => harness.sound().table.get(key);

test.each(table)(
  "an execution of %s job that loses its lease before any of its writes changes the row no more; the next execution completes the job",
  async (kind, { begin, keyOf }) => {
    let lostAt = 1;
    for (let isReached = true; isReached; lostAt++) {
      const job = await begin(silent);
      const key = keyOf(job);
      let writes = 0;
      let taken: unknown;
      const meanwhile = async (): Promise<void> => {
        const set = { runsUntil: iso(now.ms + 1) };
        taken = await harness.sound().table.write({ update: key, change: { set } });
      };
      db.plan((operation, _, body) => {
        const text = JSON.stringify(body);
        const isOfJob = text.includes(`"${key.pk}"`) && text.includes(`"${key.sk}"`);
        const isWrite = isOfJob && /^(?:Update|TransactWrite)/.test(operation);
        return isWrite && ++writes === lostAt ? { kind: "early", meanwhile } : pass;
      });
      await harness.run(harness.faulty(), job);
      const place = `${kind} ${job.id}, write ${lostAt}`;
      isReached = taken !== undefined;
      if (isReached) expect(await rowAt(key), place).toEqual({ ...key, ...Object(taken) });
      await harness.settle();
      expect(await rowAt(key), place).toMatchObject({ state: "completed" });
    }
    // An execution writes its job's row at its start, during its progress and at its end. The lease was lost at each of these writes.
    expect(lostAt).toBeGreaterThan(3);
  },
);

/** Executes the job. `meanwhile` runs just after the execution has read the row of the job. */
async function executed(job: JobMessage, key: Key, meanwhile: (table: JobContext["table"]) => Promise<unknown>) {
  const { table: sound, ...rest } = harness.sound();
  let isRead = false;
  const get: typeof sound.get = async (asked, ...options) => {
    const item = await sound.get(asked, ...options);
    if (isRead || asked.pk !== key.pk || asked.sk !== key.sk) return item;
    isRead = true;
    await meanwhile(sound);
    return item;
  };
  await harness.run({ ...rest, table: { ...sound, get } }, job);
}

test.each(table)("%s job does nothing if another execution ran since it read the row", async (_, { begin, keyOf }) => {
  const job = await begin(silent);
  const key = keyOf(job);
  let died: unknown;
  await executed(job, key, async ({ write }) => {
    died = await write({ update: key, change: { set: { runsUntil: iso(now.ms - 1) } } });
  });
  expect(await rowAt(key)).toEqual({ ...key, ...Object(died) });
  await harness.settle();
  expect(await rowAt(key)).toMatchObject({ state: "completed" });
});

test.each(table)(
  "an execution of %s job makes no row if it was deleted since the read",
  async (_, { begin, keyOf }) => {
    const job = await begin(silent);
    await executed(job, keyOf(job), ({ batchRemove }) => batchRemove([keyOf(job)]));
    expect(await rowAt(keyOf(job))).toBeUndefined();
  },
);

test.each(table.filter(([kind]) => kind !== "the import"))(
  "%s job whose message the queue refuses is accepted, and the sweep sends the message once it is overdue",
  async (_, { begin, keyOf }) => {
    const job = await begin({ ...silent, send: () => Promise.reject(new Error("the queue fails")) });
    expect(await rowAt(keyOf(job))).toMatchObject({ dueShard: keys.jobShard });
    expect(await sweepJobs(harness.sound())).toBe(0);
    now.ms += 60_000;
    expect([await sweepJobs(harness.sound()), harness.queue.splice(0)]).toEqual([1, [job]]);
  },
);
