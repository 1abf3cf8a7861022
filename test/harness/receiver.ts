/** A webhook receiver on the loopback address. It records each request and answers as the test requires. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";

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

export type Behaviour = (receipt: Receipt, response: ServerResponse, count: number) => void;

export interface Receiver {
  readonly url: string;
  readonly receipts: Receipt[];
  /** Resolves when `count` requests have arrived. Rejects after WAIT_MS. */
  until(count: number): Promise<void>;
  /**
   * Resolves when `count` different deliveries have arrived. Rejects after WAIT_MS. Unlike `until`, it does not count repeated deliveries:
   * on a busy machine, the service may send a delivery again because it has not recorded the result in time.
   */
  untilDifferent(count: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Maximum wait. On a busy machine, deliveries can take minutes. It is shorter than the time-out of the tests, so that the error says how
 * many requests have arrived.
 */
const WAIT_MS = 240_000;

export async function startReceiver(behave: Behaviour = (_, response) => response.end()): Promise<Receiver> {
  const receipts: Receipt[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const receipt = { headers: request.headers, body, event: z.parse(Event, JSON.parse(body)) };
    receipts.push(receipt);
    behave(receipt, response, receipts.length);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the receiver has no address");
  async function waitFor(count: number, arrived: () => number): Promise<void> {
    const deadline = Date.now() + WAIT_MS;
    while (arrived() < count) {
      if (Date.now() > deadline) throw new Error(`${arrived()} of ${count} deliveries came`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return {
    url: `http://127.0.0.1:${address.port}/hook`,
    receipts,
    until: (count) => waitFor(count, () => receipts.length),
    untilDifferent: (count) => waitFor(count, () => new Set(receipts.map(({ event }) => event.id)).size),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
