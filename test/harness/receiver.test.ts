/** Tests that the receiver of the tests counts an attempt once, although the service may send it again. */
import { expect, onTestFinished, test } from "vitest";
import { startReceiver } from "./receiver.ts";

const body = JSON.stringify({
  id: "dlv_1",
  event: "prospect.created",
  createdAt: "2030-01-01T00:00:00.000Z",
  data: {},
});

test("an attempt that arrives twice is one receipt and gets the same answer, and the next attempt is another receipt", async () => {
  const receiver = await startReceiver((_, response, count) => response.writeHead(count === 1 ? 503 : 200).end());
  onTestFinished(receiver.close);
  const send = async (attempt: number): Promise<number> => {
    const headers = { "X-Service-Delivery": "dlv_1", "X-Service-Attempt": String(attempt) };
    return (await fetch(receiver.url, { method: "POST", headers, body })).status;
  };
  expect([await send(1), await send(1), await send(2), await send(2)]).toEqual([503, 503, 200, 200]);
  await receiver.until(2);
  expect(receiver.receipts.map(({ headers }) => headers["x-service-attempt"])).toEqual(["1", "2"]);
  expect(receiver.requests).toHaveLength(4);
});

test("requests without the headers of the service are all counted", async () => {
  const receiver = await startReceiver();
  onTestFinished(receiver.close);
  for (let i = 0; i < 2; i++) await fetch(receiver.url, { method: "POST", body });
  expect(receiver.receipts).toHaveLength(2);
});
