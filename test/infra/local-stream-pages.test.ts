/** What the local event sources read of a stream: all of it, in order, each record asked for once while it is kept. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { KEPT_RECORDS, StreamPages, type StreamRecord } from "../../infra/local/stream-pages.ts";

const recordOf = (n: number): StreamRecord => ({
  eventName: "INSERT",
  dynamodb: { SequenceNumber: String(n), ApproximateCreationDateTime: 0, NewImage: { n: { N: String(n) } } },
});

/** A stream of so many records, of which a call answers some at a time; its iterators are places. */
function streamOf(length: () => number, answered: (limit: number) => number) {
  const asked: number[] = [];
  const call = async (_: string, body: object): Promise<unknown> => {
    const { ShardIterator, Limit } = Object.assign({ ShardIterator: "", Limit: 0 }, body);
    const from = Number(ShardIterator);
    const to = Math.min(length(), from + answered(Limit));
    for (let n = from; n < to; n++) asked.push(n);
    return { Records: Array.from({ length: to - from }, (_, i) => recordOf(from + i)), NextShardIterator: String(to) };
  };
  return { call, asked };
}

const isEven = (record: StreamRecord): boolean => Number(record.dynamodb.SequenceNumber) % 2 === 0;

test("law: whoever reads when, each source is told every place once and in order, and nothing is asked for twice", async () => {
  const step = fc.record({
    // At the same moment.
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
      const sources = Array.from({ length: 3 }, () => ({ next: "0", told: [] as number[] }));
      const readBy = async (source: (typeof sources)[number]): Promise<number> => {
        const { told, next } = await pages.read(source.next);
        for (const { sequenceNumber, record } of told) {
          expect(record === undefined ? undefined : record.dynamodb.SequenceNumber).toBe(
            Number(sequenceNumber) % 2 === 0 ? sequenceNumber : undefined,
          );
          source.told.push(Number(sequenceNumber));
        }
        source.next = next ?? "";
        return told.length;
      };
      for (const { readers, grows, answered } of steps) {
        length += grows;
        most = answered;
        await Promise.all(readers.map((n) => sources[n]).map((source) => source && readBy(source)));
      }
      for (const source of sources) while ((await readBy(source)) > 0);
      const all = Array.from({ length }, (_, n) => n);
      for (const { told } of sources) expect(told).toEqual(all);
      expect(asked).toEqual(all);
    }),
    { numRuns: 100 },
  );
});

test("what is forgotten is asked for once more", async () => {
  const length = 3 * KEPT_RECORDS;
  const { call, asked } = streamOf(
    () => length,
    (limit) => limit,
  );
  const pages = new StreamPages(call, () => true);
  for (const _ of ["ahead", "behind"]) {
    const told: string[] = [];
    for (let next = "0"; told.length < length; ) {
      const page = await pages.read(next);
      told.push(...page.told.map(({ sequenceNumber }) => sequenceNumber));
      next = page.next ?? "";
    }
    expect(told).toEqual(Array.from({ length }, (_, n) => String(n)));
  }
  expect(asked).toHaveLength(2 * length);
});

test("a call that fails fails those who waited for it, and nobody later", async () => {
  let fails = true;
  const { call } = streamOf(
    () => 3,
    (limit) => limit,
  );
  const pages = new StreamPages(async (operation, body) => {
    if (fails) throw new Error("the stream went away");
    return call(operation, body);
  }, isEven);
  const both = await Promise.allSettled([pages.read("0"), pages.read("0")]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  fails = false;
  expect((await pages.read("0")).told).toHaveLength(3);
});
