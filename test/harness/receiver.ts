/** A webhook receiver on the loopback address. It records each request and answers as the test requires. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";

export interface Receipt {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly event: z.infer<typeof Event>;
}

const Event = z.looseObject({
  id: z.string(),
  event: z.string(),
  createdAt: z.string(),
  data: z.looseObject({}),
});

/**
 * Answers a request. `count` is the number of the attempt among all attempts that have arrived, counted from 1. If the service sends an
 * attempt again, `count` is the same as the first time, so that the request gets the same answer.
 */
export type Behaviour = (receipt: Receipt, response: ServerResponse, count: number) => void;

export interface Receiver {
  readonly url: string;
  /**
   * The first request of each attempt. On a busy machine, the service may send an attempt again because it could not record the result in
   * time. Such a repeated request has the same delivery and the same number of the attempt, and is not in this list.
   */
  readonly receipts: Receipt[];
  /** All requests, also the repeated ones. */
  readonly requests: readonly Receipt[];
  /** Resolves when the list `receipts` has `count` entries. Rejects after WAIT_MS. */
  until(count: number): Promise<void>;
  /** Resolves when `count` different deliveries have arrived. Unlike `until`, it counts only one attempt of each. Rejects after WAIT_MS. */
  untilDifferent(count: number): Promise<void>;
  /** Resolves when the list `receipts` has an entry that `isWanted` accepts. Rejects after WAIT_MS. */
  untilSome(isWanted: (receipt: Receipt) => boolean): Promise<void>;
  /**
   * Ignores the events of changes before this time. The service may publish a change after a later webhook was created, and a test does not
   * expect the events of the tests before it.
   */
  ignoreBefore(time: string): void;
  close(): Promise<void>;
}

/**
 * Maximum wait in milliseconds. On a busy machine, deliveries can take minutes. The wait is shorter than the time-out of the tests, so that
 * the error says how many requests have arrived.
 */
const WAIT_MS = 240_000;

/** Returns true if both requests belong to the same attempt. A request that does not come from the service has no attempt number. */
const isSameAttempt = ({ headers: one }: Receipt, { headers: other }: Receipt): boolean =>
  one["x-service-attempt"] !== undefined &&
  one["x-service-attempt"] === other["x-service-attempt"] &&
  one["x-service-delivery"] === other["x-service-delivery"];

export async function startReceiver(behave: Behaviour = (_, response) => response.end()): Promise<Receiver> {
  const receipts: Receipt[] = [];
  const requests: Receipt[] = [];
  let since = "";
  const { endpoint, stop } = await serveOnLoopback(async (request, response) => {
    const body = await text(request);
    const receipt = { headers: request.headers, body, event: z.parse(Event, JSON.parse(body)) };
    if (receipt.event.createdAt < since) return void response.end();
    requests.push(receipt);
    const known = receipts.findIndex((one) => isSameAttempt(one, receipt));
    const count = known === -1 ? receipts.push(receipt) : known + 1;
    behave(receipt, response, count);
  });
  async function waitFor(count: number, arrived: () => number): Promise<void> {
    const deadline = Date.now() + WAIT_MS;
    while (arrived() < count) {
      if (Date.now() > deadline) throw new Error(`${arrived()} of ${count} deliveries came`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return {
    url: `${endpoint}/hook`,
    receipts,
    requests,
    until: (count) => waitFor(count, () => receipts.length),
    untilDifferent: (count) => waitFor(count, () => new Set(receipts.map(({ event }) => event.id)).size),
    untilSome: (isWanted) => waitFor(1, () => Number(receipts.some(isWanted))),
    ignoreBefore: (time) => {
      since = time;
    },
    close: async () => stop(),
  };
}
