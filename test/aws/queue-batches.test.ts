/** Tests that the service sends every message of a batch, although SQS accepts only some of them, or throttles the whole batch. */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { Pace } from "#shared/aws/pace.ts";
import { openQueue, type Queued, sqsClient } from "#shared/aws/sqs.ts";
import { withDeadline } from "#shared/deadline.ts";
import { isTransient, QueueBusy } from "#shared/errors.ts";
import { closeAfterEach, http } from "../harness/listening.ts";
import { thrownBy } from "../harness/shapes.ts";

closeAfterEach();

const Entry = z.object({ Id: z.string(), MessageBody: z.string(), MessageGroupId: z.optional(z.string()) });
const Batch = z.object({ Entries: z.array(Entry) });
const Message = z.object({ companyId: z.number() });

type Verdict = "accept" | "fail" | "refuse" | "throttle";

/** Starts a server like SQS. `judge` gets the company of a message and the number of times that this message has arrived, counted from 1. */
async function startQueue(judge: (companyId: number, times: number) => Verdict) {
  const arrived = new Map<number, number>();
  const accepted: number[] = [];
  const groups: (string | undefined)[] = [];
  const { endpoint } = await http(async (response, request) => {
    const { Entries } = z.parse(Batch, JSON.parse(await text(request)));
    groups.push(...Entries.map(({ MessageGroupId }) => MessageGroupId));
    const judged = Entries.map(({ Id, MessageBody }) => {
      const { companyId } = z.parse(Message, JSON.parse(MessageBody));
      const times = (arrived.get(companyId) ?? 0) + 1;
      arrived.set(companyId, times);
      return { Id, MessageBody, companyId, verdict: judge(companyId, times) };
    });
    if (judged.some(({ verdict }) => verdict === "throttle")) return throttle(response);
    const taken = judged.filter(({ verdict }) => verdict === "accept");
    accepted.push(...taken.map(({ companyId }) => companyId));
    const Successful = taken.map(({ Id, MessageBody }) => ({
      Id,
      MessageId: Id,
      MD5OfMessageBody: createHash("md5").update(MessageBody).digest("hex"),
    }));
    const Failed = judged
      .filter(({ verdict }) => verdict === "fail" || verdict === "refuse")
      .map(({ Id, verdict }) => ({
        Id,
        Code: verdict === "fail" ? "InternalError" : "InvalidMessageContents",
        SenderFault: verdict === "refuse",
      }));
    response.writeHead(200, jsonType).end(JSON.stringify({ Successful, Failed }));
  });
  const credentials = { accessKeyId: "AKID", secretAccessKey: "SECRET" };
  const queue = openQueue(`${endpoint}/1/queue`, sqsClient({ endpoint, region: "eu-west-1", credentials }));
  return { queue, arrived, accepted, groups };
}

const jsonType = { "Content-Type": "application/x-amz-json-1.0" };

const throttle = (response: ServerResponse): void =>
  void response
    .writeHead(400, { ...jsonType, "x-amzn-query-error": "RequestThrottled;Sender" })
    .end('{"__type":"com.amazonaws.sqs#RequestThrottled","message":"as planned"}');

/** Returns `count` messages, one for each of the companies 1, 2, 3 and so on. */
const messages = (count: number): Queued[] =>
  Array.from({ length: count }, (_, i) => ({ message: { companyId: i + 1 }, delaySeconds: 0 }));

const companies = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);
const inOrder = (list: readonly number[]): number[] => list.toSorted((a, b) => a - b);

test("messages that SQS does not accept at first are sent again until SQS accepts them, and no accepted message is sent again", async () => {
  const failures = (companyId: number): number => companyId % 7;
  const { queue, accepted, arrived } = await startQueue((companyId, times) =>
    times > failures(companyId) ? "accept" : "fail",
  );
  await queue.send(messages(95));
  expect(inOrder(accepted)).toEqual(companies(95));
  expect(arrived).toEqual(new Map([...arrived.keys()].map((companyId) => [companyId, failures(companyId) + 1])));
});

// In a fair queue of SQS, a message group does not delay others, so the many events of a bulk job need a group of their own.
test("each company has a message group, and another one for the events that its bulk jobs cause for single records", async () => {
  const { queue, groups } = await startQueue(() => "accept");
  const plain = messages(2);
  const ofBulkJobs = plain.map(({ message, ...rest }) => ({ message: { ...message, isBulk: true as const }, ...rest }));
  await queue.send([...plain, ...ofBulkJobs]);
  expect(groups.toSorted()).toEqual(["1", "1-bulk", "2", "2-bulk"]);
});

test("batches that SQS throttles as a whole are sent again until it accepts them", async () => {
  // The SDK tries each call three times. Five attempts are refused, so the service must call the SDK a second time.
  const { queue, accepted } = await startQueue((_, times) => (times > 5 ? "accept" : "throttle"));
  await withDeadline(
    () => 60_000,
    () => queue.send(messages(25)),
  );
  expect(inOrder(accepted)).toEqual(companies(25));
});

test("a message that SQS never accepts is sent again until shortly before the deadline, and does not delay the others", async () => {
  const { queue, accepted, arrived } = await startQueue((companyId) => (companyId === 5 ? "fail" : "accept"));
  // The deadline is reached when message 5 has been sent four times. The test therefore does not depend on the speed of the machine.
  const remainingMs = (): number => ((arrived.get(5) ?? 0) < 4 ? 60_000 : 0);
  const error = await thrownBy(withDeadline(remainingMs, () => queue.send(messages(30))));
  expect(error).toBeInstanceOf(QueueBusy);
  expect(isTransient(error)).toBe(true);
  expect(inOrder(accepted)).toEqual(companies(30).filter((companyId) => companyId !== 5));
  expect(arrived.get(5)).toBe(4);
});

test("a message that SQS refuses as invalid is sent only once, and the others arrive", async () => {
  const { queue, accepted, arrived } = await startQueue((companyId, times) => {
    if (companyId === 5) return "refuse";
    return companyId % 2 === 0 || times > 2 ? "accept" : "fail";
  });
  const error = await thrownBy(queue.send(messages(30)));
  expect(String(error)).toContain("the queue refused 1 of 30 messages, the first one as InvalidMessageContents");
  expect(isTransient(error)).toBe(false);
  expect(inOrder(accepted)).toEqual(companies(30).filter((companyId) => companyId !== 5));
  expect(arrived.get(5)).toBe(1);
});

test("entries that are never processed are sent again after pauses, and not as often as the processor can", async () => {
  const endsAt = Date.now() + 2_200;
  let attempts = 0;
  const sending = withDeadline(
    () => endsAt - Date.now(),
    () =>
      new Pace(QueueBusy).send([1], 1, async (chunk) => {
        attempts++;
        return chunk;
      }),
  );
  expect(await thrownBy(sending)).toBeInstanceOf(QueueBusy);
  expect(attempts).toBeLessThan(50);
});
