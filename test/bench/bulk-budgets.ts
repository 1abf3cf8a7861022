/**
 * Measures the budgets of bulk jobs. Their read and write units are compared with those of single requests. Their time is compared with the
 * time of a plain loop that sends the same transactions with the SDK alone.
 */
import { TransactWriteCommand, type TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import { mapConcurrently } from "#shared/all-ended.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { type ApiContext, contextOn, type JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered, type Usage } from "#shared/db/meter.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { runJob } from "#shared/jobs/job.ts";
import { LOCAL, patient, TABLE } from "../harness/faulty-dynamodb.ts";
import { createBulk, createProspect, updateProspect } from "../harness/verbs.ts";
import { memoryBucket } from "../jobs/faulty-jobs.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { median, taken } from "./clock.ts";
import { newProspectAt } from "./prospects.ts";
import type { Stage } from "./stage.ts";
import { plainSdk } from "./table.ts";

/** Transactions that the plain loop sends concurrently, as many as a bulk job. */
const LANES = 12;

const made = ({ company, caller, context }: Stage, count: number): Promise<number[]> =>
  mapConcurrently(
    Array.from({ length: count }, (_, i) => newProspectAt(company, i)),
    LANES,
    async (prospect) => (await createProspect(context, caller, prospect)).id,
  );

const setIn = ({ company }: Stage) => ({
  currentStatusId: company.statuses[1]?.id,
  assignedToUserId: company.repIds[0],
});

const jobContextOn = (context: ApiContext): JobContext => ({
  ...context,
  objects: memoryBucket(),
  jobs: { send: async () => undefined, returnIn: async () => undefined },
});

async function newJob(stage: Stage, context: JobContext, ids: number[]): Promise<() => Promise<unknown>> {
  const job = await createBulk(context, context, stage.caller, { ids, action: { set: setIn(stage) } });
  if (!("id" in job)) throw new Error("a dry run is no job");
  return () => runJob(bulkJob(), context, { companyId: stage.company.id, id: job.id }, () => 300_000);
}

export async function bulkUnits(stage: Stage): Promise<Budget[]> {
  const { company, caller, context } = stage;
  const count = 200;
  const single = await made(stage, count);
  const ones = await metered(async () => {
    for (const id of single) await updateProspect(context, caller, id, setIn(stage));
  });
  const ids = await made(stage, count);
  const bulk = await metered(async () => (await newJob(stage, jobContextOn(context), ids))());
  const units = ({ readUnits, writeUnits }: Usage): number => readUnits / 2 + writeUnits;
  const ratio = (of: (usage: Usage) => number): number => of(bulk.usage) / of(ones.usage);
  const text = `bulk change of ${count} prospects, relative to single changes`;
  const line = budgetsOf(sizeOf(company.count));
  const writes = ratio(({ writeUnits }) => writeUnits);
  return [
    line(6, `${text}: write units`, 1.1, writes),
    line(6, `${text}: all units, of which a read costs half`, 1.1, ratio(units)),
  ];
}

const ROUNDS = 3;

/** The job and the plain loop are measured in turn, so that other load of the machine affects both. */
export async function bulkSpeed(stage: Stage, endpoint: string): Promise<Budget[]> {
  const { company, context, clock } = stage;
  const count = 1_024;
  const ids = await made(stage, count);
  const rows = await context.table.batchGet(ids.map((id) => keys.prospect(company.id, id)));
  const before = rows.map(({ pk, sk, ...row }) => ({ pk: String(pk), sk: String(sk), ...row }));

  const sent: TransactWriteCommandInput[] = [];
  const job = jobContextOn(contextOn(recording(endpoint, sent), clock));
  const plain = plainSdk(endpoint);
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const run = await newJob(stage, job, ids);
    sent.length = 0;
    const bulk = await taken(run);
    // The plain loop repeats only the first `count` transactions, because the later ones only store the state of the job.
    const own = sent.slice(0, count);
    await context.table.batchPut(before);
    const bare = await taken(() => mapConcurrently(own, LANES, (input) => plain.send(new TransactWriteCommand(input))));
    await context.table.batchPut(before);
    ratios.push(bulk.wallMs / bare.wallMs);
  }
  const text = `bulk change of ${count} prospects, time beside a plain loop of the same transactions`;
  return [budgetsOf(sizeOf(company.count))(6, text, 2, median(ratios))];
}

/** Returns a table that appends each sent transaction to `sent`. */
function recording(endpoint: string, sent: TransactWriteCommandInput[]): Table {
  const client = dynamoClient({ endpoint, ...LOCAL, ...patient });
  client.middlewareStack.add(
    (next) => (call) => {
      if (isTransaction(call.input)) sent.push({ TransactItems: call.input.TransactItems });
      return next(call);
    },
    { step: "initialize", priority: "low" },
  );
  return openTable(TABLE, client);
}

const isTransaction = (input: object): input is Required<Pick<TransactWriteCommandInput, "TransactItems">> =>
  "ClientRequestToken" in input && "TransactItems" in input;
