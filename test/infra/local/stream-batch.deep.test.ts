/** Tests that the event source of a stream retries, splits, filters and gives up records as Lambda does. */
import type { _Record as StreamRecord } from "@aws-sdk/client-dynamodb-streams";
import { describe, expect, test } from "vitest";
import { type BatchRules, batchesOf, processBatch } from "../../../infra/local/sources/stream-batch.ts";
import { lambdaRecord } from "../../../infra/local/sources/stream-record.ts";

const rules: BatchRules = { bisect: true, maxRetries: 2, maxAgeSeconds: -1 };
const record = (number: number, ApproximateCreationDateTime = 100) => ({
  dynamodb: { SequenceNumber: String(number), ApproximateCreationDateTime },
});
const numbers = (records: readonly ReturnType<typeof record>[]): number[] =>
  records.map(({ dynamodb }) => Number(dynamodb.SequenceNumber));

interface Story {
  readonly invoked: number[][];
  readonly checkpoints: number[];
  readonly givenUp: [number[], string, number][];
}

/** Processes the records as one batch. `answer` simulates the function: it returns the function's result or throws an error. */
async function run(
  records: readonly ReturnType<typeof record>[],
  answer: (batch: number[]) => unknown,
  changes: Partial<BatchRules> = {},
): Promise<Story> {
  const story: Story = { invoked: [], checkpoints: [], givenUp: [] };
  await processBatch(
    records,
    { ...rules, ...changes },
    {
      async invoke(batch) {
        story.invoked.push(numbers(batch));
        return JSON.stringify(answer(numbers(batch)) ?? null);
      },
      checkpoint: async (sequenceNumber) => void story.checkpoints.push(Number(sequenceNumber)),
      giveUp: async (batch, reason, invocations) => void story.givenUp.push([numbers(batch), reason, invocations]),
      assertRunning: () => undefined,
      pause: async () => undefined,
      now: () => 200_000,
    },
  );
  return story;
}

const four = [1, 2, 3, 4].map((number) => record(number));
const failures = (...sequence: (number | string)[]) => ({
  batchItemFailures: sequence.map((itemIdentifier) => ({ itemIdentifier: String(itemIdentifier) })),
});
const throwOn = (bad: number) => (batch: number[]) => {
  if (batch.includes(bad)) throw new Error("bad record");
};

describe("a function that throws", () => {
  test("has its batch split until the bad record is alone, which is then retried and abandoned", async () => {
    const story = await run(four, throwOn(3));
    expect(story.invoked).toEqual([[1, 2, 3, 4], [1, 2], [3, 4], [3], [3], [3], [4]]);
    expect(story.givenUp).toEqual([[[3], "RetryAttemptsExhausted", 3]]);
    expect(story.checkpoints).toEqual([2, 3, 4]);
  });

  test("fails the whole batch without bisection", async () => {
    const story = await run(four, throwOn(3), { bisect: false });
    expect(story.invoked).toHaveLength(3);
    expect(story.givenUp).toEqual([[[1, 2, 3, 4], "RetryAttemptsExhausted", 3]]);
  });

  test("only the first time is invoked again, and no record is abandoned", async () => {
    let calls = 0;
    const story = await run([record(1)], () => {
      if (calls++ === 0) throw new Error("passing fault");
    });
    expect(story).toEqual({ invoked: [[1], [1]], checkpoints: [1], givenUp: [] });
  });
});

describe("a function that reports failures", () => {
  test("is invoked again from the lowest failed record on, and earlier records are processed", async () => {
    const story = await run(four, (batch) => (batch.length === 4 ? failures(4, 3) : undefined));
    expect(story.invoked).toEqual([
      [1, 2, 3, 4],
      [3, 4],
    ]);
    expect(story.checkpoints).toEqual([2, 4]);
  });

  test("has the failed record and all later records of the batch abandoned when retries run out", async () => {
    const story = await run(four, (batch) => (batch.includes(2) ? failures(2) : undefined));
    expect(story.invoked).toEqual([
      [1, 2, 3, 4],
      [2, 3, 4],
      [2, 3, 4],
      [2, 3, 4],
    ]);
    expect(story.givenUp).toEqual([[[2, 3, 4], "RetryAttemptsExhausted", 3]]);
    expect(story.checkpoints).toEqual([1, 4]);
  });

  test.each([
    ["an unknown identifier", failures("other")],
    ["an empty identifier", failures("")],
    ["no identifier", { batchItemFailures: [{}] }],
    ["a text", "text"],
  ])("%s fails the whole batch", async (_, answer) => {
    let calls = 0;
    const story = await run(four, () => (calls++ === 0 ? answer : undefined));
    expect(story.invoked).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
  });
});

test("records that are too old are abandoned without an invocation", async () => {
  const story = await run([record(1, 10), record(2, 190)], () => undefined, { maxAgeSeconds: 60 });
  expect(story).toEqual({ invoked: [[2]], checkpoints: [1, 2], givenUp: [[[1], "MaximumRecordAgeExceeded", 0]] });
});

describe("records are cut into batches", () => {
  const entry = (number: number, text = "") => ({ position: String(number), record: { ...record(number), text } });
  /** Divides records into batches. The filter accepts only records with even numbers. */
  const cut = (...all: number[]) =>
    batchesOf(
      all.map((number) => (number % 2 === 0 ? entry(number) : { position: String(number), record: undefined })),
      2,
    ).map(({ records, position }) => [numbers(records), position]);

  test("whose size counts only the records that the filter accepts; other records belong to the batch of their neighbours", () => {
    expect(cut(1, 2, 3, 4, 5, 6, 7)).toEqual([
      [[2, 4], "5"],
      [[6], "7"],
    ]);
  });

  test("and form one batch if the filter accepts none of them; the batch ends with the last record", () => {
    expect(cut(1, 3, 5)).toEqual([[[], "5"]]);
    expect(cut()).toEqual([]);
  });

  test("that each fit an invocation", () => {
    const large = Array.from({ length: 12 }, (_, i) => entry(i, "x".repeat(1_000_000)));
    const batches = batchesOf(large, 100);
    expect(batches.map(({ records }) => records.length)).toEqual([5, 5, 2]);
    expect(batches.flatMap(({ records }) => records)).toEqual(large.map((one) => one.record));
  });
});

test("a record has the form in which Lambda hands it to a function", () => {
  const bytes = Uint8Array.of(1, 2, 255);
  const head = { eventID: "e", eventName: "MODIFY", eventSource: "aws:dynamodb" } as const;
  const same = {
    SequenceNumber: "7",
    StreamViewType: "NEW_AND_OLD_IMAGES",
    Keys: { pk: { S: "a" } },
    OldImage: { flag: { BOOL: false }, none: { NULL: true }, number: { N: "1e3" }, texts: { SS: ["a"] } },
  } satisfies StreamRecord["dynamodb"];
  const imageOf = <B>(B: B) => ({ bytes: { B }, many: { BS: [B] }, list: { L: [{ M: { in: { B } } }] } });
  const time = new Date(1_500);
  expect(
    lambdaRecord({ ...head, dynamodb: { ...same, ApproximateCreationDateTime: time, NewImage: imageOf(bytes) } }),
  ).toEqual({ ...head, dynamodb: { ...same, ApproximateCreationDateTime: 1.5, NewImage: imageOf("AQL/") } });
});
