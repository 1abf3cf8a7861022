/**
 * Compares the time of a bulk job with the time of a plain loop that sends the same transactions through an SDK client. The two are
 * measured in turn, so that other load of the machine affects both.
 */

import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, TransactWriteCommand, type TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import { mapConcurrently } from "#shared/all-ended.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { runJob } from "#shared/jobs/job.ts";
import { patient, TABLE } from "../harness/faulty-dynamodb.ts";
import { createBulk, createProspect } from "../harness/verbs.ts";
import { memoryBucket } from "../jobs/faulty-jobs.ts";
import { type Budget, sizeOf } from "./budget.ts";
import { median, taken } from "./clock.ts";
import { makeProspect } from "./prospects.ts";
import type { Stage } from "./stage.ts";

const RECORDS = 1_024;
const ROUNDS = 3;
/** Number of transactions that the plain loop sends concurrently. A bulk job sends the same number concurrently. */
const LANES = 12;
const credentials = { accessKeyId: "local", secretAccessKey: "local" };

export async function bulkSpeed({ company, caller, context, clock }: Stage, endpoint: string): Promise<Budget[]> {
  const numbers = Array.from({ length: RECORDS }, (_, i) => i % company.count);
  const ids = await mapConcurrently(numbers, LANES, async (i) => {
    const { name, phoneNumber, emailAddress, lat, lng } = makeProspect(company, i).prospect;
    return (await createProspect(context, caller, { name, phoneNumber, emailAddress, lat, lng })).id;
  });
  const rows = await context.table.batchGet(ids.map((id) => keys.prospect(company.id, id)));
  const before = rows.map(({ pk, sk, ...row }) => ({ pk: String(pk), sk: String(sk), ...row }));

  const sent: TransactWriteCommandInput[] = [];
  const job = jobOn(endpoint, clock, sent);
  const plain = DynamoDBDocumentClient.from(
    new DynamoDBClient({ endpoint, region: "us-east-1", credentials, ...patient }),
    { marshallOptions: { removeUndefinedValues: true } },
  );
  const set = { currentStatusId: company.statuses[1]?.id, assignedToUserId: company.repIds[0] };
  const samples: { bulkMs: number; bareMs: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const created = await createBulk(job, job, caller, { ids, action: { set } });
    if (!("id" in created)) throw new Error("a dry run is no job");
    sent.length = 0;
    const message = { companyId: company.id, id: created.id };
    const bulk = await taken(() => runJob(bulkJob(), job, message, () => 300_000));
    // The first `RECORDS` transactions change the prospects. The later ones only store the state of the job, so the plain loop leaves them
    // out.
    const own = sent.slice(0, RECORDS);
    await context.table.batchPut(before);
    const bare = await taken(() => mapConcurrently(own, LANES, (input) => plain.send(new TransactWriteCommand(input))));
    await context.table.batchPut(before);
    samples.push({ bulkMs: bulk.wallMs, bareMs: bare.wallMs });
  }
  const ratio = median(samples.map(({ bulkMs, bareMs }) => bulkMs / bareMs));
  const text = `bulk change of ${RECORDS} prospects, time beside a plain loop of the same transactions`;
  return [{ number: 6, text, size: sizeOf(company.count), limit: 2, measured: ratio }];
}

/** Returns a job context. Its DynamoDB client appends each transaction that it sends to `sent`. */
function jobOn(endpoint: string, clock: Stage["clock"], sent: TransactWriteCommandInput[]): JobContext {
  const client = dynamoClient({ endpoint, region: "us-east-1", credentials, ...patient });
  client.middlewareStack.add(
    (next) => (call) => {
      if (isTransaction(call.input)) sent.push({ TransactItems: call.input.TransactItems });
      return next(call);
    },
    { step: "initialize", priority: "low" },
  );
  const jobs = { send: async () => undefined, returnIn: async () => undefined };
  return { ...contextOn(openTable(TABLE, client), clock), objects: memoryBucket(), jobs };
}

const isTransaction = (input: object): input is Required<Pick<TransactWriteCommandInput, "TransactItems">> =>
  "ClientRequestToken" in input && "TransactItems" in input;
