/** The webhook receiver of the smoke test. It is an HTTP server on this machine that verifies each signature. */
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { assert } from "#shared/smoke/api.ts";
import { type Delivery, type Receiver, verified } from "#shared/smoke/story.ts";
import { serveOnLoopback } from "../local/servers/listener.ts";

interface Receipt {
  readonly body: string;
  readonly signature: string;
  readonly receivedAt: number;
}

const WAIT_MS = 30_000;

/** Starts the receiver on `port`. The service reaches it at `url`, which is undefined if the service runs on this machine. */
export async function startReceiver(port: number, url: string | undefined): Promise<Receiver & { stop(): void }> {
  const receipts: Receipt[] = [];
  const deliveries: Delivery[] = [];
  const { endpoint, stop } = await serveOnLoopback(async (request, response) => {
    const body = await text(request);
    const signature = String(request.headers["x-service-signature"]);
    receipts.push({ body, signature, receivedAt: Date.now() });
    response.end();
  }, port);
  return {
    url: url ?? `${endpoint}/hook`,
    proof: "the receiver gets it and verifies the signature",
    async delivered({ webhook, prospects, count }) {
      for (const deadline = Date.now() + WAIT_MS; ; await wait(10)) {
        for (const receipt of receipts.splice(0)) {
          const event = verified(receipt, webhook.secretKey);
          deliveries.push({ id: event.id, event, delayMs: receipt.receivedAt - Date.parse(event.createdAt) });
        }
        const own = deliveries.filter(({ event }) => prospects.has(event.data.prospect.id));
        if (own.length >= count) return own;
        assert(Date.now() < deadline, `only ${own.length} of ${count} deliveries came within ${WAIT_MS} ms`);
      }
    },
    stop,
  };
}
