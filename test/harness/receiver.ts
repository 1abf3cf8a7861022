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

const Event = z.looseObject({ id: z.string(), event: z.string(), createdAt: z.string(), data: z.looseObject({}) });

/** `count` is the number of the attempt among all attempts at this receiver. A repeated request of an attempt has the same number. */
export type Behaviour = (receipt: Receipt, response: ServerResponse, count: number) => void;

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Longest wait for deliveries, which take minutes on a busy machine. A test's time-out is longer, so the error can say how many came. */
const WAIT_MS = 240_000;

/**
 * Returns true if both requests belong to the same attempt of a delivery. A request that does not come from the service has no attempt
 * number.
 */
const isSameAttempt = ({ headers: one }: Receipt, { headers: other }: Receipt): boolean =>
  one["x-service-attempt"] !== undefined &&
  one["x-service-attempt"] === other["x-service-attempt"] &&
  one["x-service-delivery"] === other["x-service-delivery"];

export async function startReceiver(behave: Behaviour = (_, response) => response.end()) {
  /** The first request of each attempt. The service may repeat an attempt if it could not record the result in time. */
  const receipts: Receipt[] = [];
  /** All requests, including repeated requests of one attempt. */
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
    until: (count: number) => waitFor(count, () => receipts.length),
    /** Unlike `until`, counts only one attempt of each delivery. */
    untilDifferent: (count: number) => waitFor(count, () => new Set(receipts.map(({ event }) => event.id)).size),
    untilSome: (isWanted: (receipt: Receipt) => boolean) => waitFor(1, () => Number(receipts.some(isWanted))),
    /** Ignores events of changes before `time`, because the service may publish a change to a webhook that was created after it. */
    ignoreBefore: (time: string): void => {
      since = time;
    },
    close: async (): Promise<void> => stop(),
  };
}
