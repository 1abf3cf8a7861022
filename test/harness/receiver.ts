/** A webhook receiver on loopback. It records each request and answers as the test requires. */
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
  close(): Promise<void>;
}

const WAIT_MS = 30_000;

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
  return {
    url: `http://127.0.0.1:${address.port}/hook`,
    receipts,
    until: async (count) => {
      const deadline = Date.now() + WAIT_MS;
      while (receipts.length < count) {
        if (Date.now() > deadline) throw new Error(`${receipts.length} of ${count} deliveries came`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
