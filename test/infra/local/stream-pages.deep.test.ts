/**
 * Tests that the local event sources read a stream completely and in order. Also tests that each record is fetched from the stream only
 * once, because the sources share a cache.
 */
import type { _Record as StreamRecord } from "@aws-sdk/client-dynamodb-streams";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CACHED_ENTRIES, type GetRecords, StreamPages } from "../../../infra/local/sources/stream-pages.ts";

const recordOf = (n: number): StreamRecord => ({
  eventName: "INSERT",
  dynamodb: { SequenceNumber: String(n), ApproximateCreationDateTime: new Date(0), NewImage: { n: { N: String(n) } } },
});

/**
 * Simulates a stream with `length()` records. One request returns at most `answered(limit)` of them. An iterator is a position in the
 * stream.
 */
function streamOf(length: () => number, answered: (limit: number) => number) {
  const asked: number[] = [];
  const call: GetRecords = async (iterator, limit) => {
    const from = Number(iterator);
    const to = Math.min(length(), from + answered(limit));
    for (let n = from; n < to; n++) asked.push(n);
    return { Records: Array.from({ length: to - from }, (_, i) => recordOf(from + i)), NextShardIterator: String(to) };
  };
  return { call, asked };
}

const isEven = (record: StreamRecord): boolean => Number(record.dynamodb?.SequenceNumber) % 2 === 0;

test("in any order of reads, each source sees every position once and in order, and no record is fetched twice", async () => {
  const step = fc.record({
    // The numbers of the event sources that read at the same time in this step.
    readers: fc.uniqueArray(fc.nat({ max: 2 }), { minLength: 1 }),
    grows: fc.nat({ max: 30 }),
    answered: fc.integer({ min: 1, max: 20 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      let length = 0;
      let most = 1;
      const { call, asked } = streamOf(
        () => length,
        (limit) => Math.min(limit, most),
      );
      const pages = new StreamPages(call, isEven);
      const sources = Array.from({ length: 3 }, () => ({ next: "0", seen: [] as number[] }));
      const readBy = async (source: (typeof sources)[number]): Promise<number> => {
        const { entries, next } = await pages.read(source.next);
        for (const { sequenceNumber, record } of entries) {
          expect(record === undefined ? undefined : record.dynamodb.SequenceNumber).toBe(
            Number(sequenceNumber) % 2 === 0 ? sequenceNumber : undefined,
          );
          source.seen.push(Number(sequenceNumber));
        }
        source.next = next ?? "";
        return entries.length;
      };
      for (const { readers, grows, answered } of steps) {
        length += grows;
        most = answered;
        await Promise.all(readers.map((n) => sources[n]).map((source) => source && readBy(source)));
      }
      for (const source of sources) while ((await readBy(source)) > 0);
      const all = Array.from({ length }, (_, n) => n);
      for (const { seen } of sources) expect(seen).toEqual(all);
      expect(asked).toEqual(all);
    }),
    { numRuns: 100 },
  );
});

test("a record that the cache has evicted is fetched again", async () => {
  const length = 3 * CACHED_ENTRIES;
  const { call, asked } = streamOf(
    () => length,
    (limit) => limit,
  );
  const pages = new StreamPages(call, () => true);
  for (const _ of ["ahead", "behind"]) {
    const seen: string[] = [];
    for (let next = "0"; seen.length < length; ) {
      const page = await pages.read(next);
      seen.push(...page.entries.map(({ sequenceNumber }) => sequenceNumber));
      next = page.next ?? "";
    }
    expect(seen).toEqual(Array.from({ length }, (_, n) => String(n)));
  }
  expect(asked).toHaveLength(2 * length);
});

test("a failed call fails the reads that waited for the call, and no later read", async () => {
  let fails = true;
  const { call } = streamOf(
    () => 3,
    (limit) => limit,
  );
  const pages = new StreamPages(async (iterator, limit) => {
    if (fails) throw new Error("the stream went away");
    return call(iterator, limit);
  }, isEven);
  const both = await Promise.allSettled([pages.read("0"), pages.read("0")]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  fails = false;
  expect((await pages.read("0")).entries).toHaveLength(3);
});

test("a record has the form in which Lambda hands it to a function", async () => {
  const bytes = Uint8Array.of(1, 2, 255);
  const record: StreamRecord = {
    eventID: "e",
    eventName: "MODIFY",
    eventSource: "aws:dynamodb",
    dynamodb: {
      SequenceNumber: "7",
      StreamViewType: "NEW_AND_OLD_IMAGES",
      ApproximateCreationDateTime: new Date(1_500),
      Keys: { pk: { S: "a" } },
      OldImage: { flag: { BOOL: false }, none: { NULL: true }, number: { N: "1e3" }, texts: { SS: ["a"] } },
      NewImage: { bytes: { B: bytes }, many: { BS: [bytes] }, list: { L: [{ M: { in: { B: bytes } } }] } },
    },
  };
  const pages = new StreamPages(
    async () => ({ Records: [record], NextShardIterator: "1" }),
    () => true,
  );
  expect((await pages.read("0")).entries).toEqual([
    {
      sequenceNumber: "7",
      record: {
        eventID: "e",
        eventName: "MODIFY",
        eventSource: "aws:dynamodb",
        dynamodb: {
          SequenceNumber: "7",
          StreamViewType: "NEW_AND_OLD_IMAGES",
          ApproximateCreationDateTime: 1.5,
          Keys: { pk: { S: "a" } },
          OldImage: { flag: { BOOL: false }, none: { NULL: true }, number: { N: "1e3" }, texts: { SS: ["a"] } },
          NewImage: { bytes: { B: "AQL/" }, many: { BS: ["AQL/"] }, list: { L: [{ M: { in: { B: "AQL/" } } }] } },
        },
      },
    },
  ]);
});
