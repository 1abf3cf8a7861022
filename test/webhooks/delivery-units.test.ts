/**
 * Tests the write units of a delivered event and of a failed attempt. Also tests that stored bodies are compressed and read back
 * unchanged.
 */
import { expect, test } from "vitest";
import { metered } from "#shared/db/meter.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { deliveryItem, packedBody, unpackedBody } from "#shared/webhooks/delivery.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createdProspect, deliveries, drain, newPipeline, publish } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
/** A prospect with all fields that a canvasser fills in. */
const filled = {
  name: "Ada Lovelace-Byron",
  phoneNumber: "+1 303 555 0134",
  emailAddress: "ada.lovelace@mail.example.com",
  lat: 39.739_235,
  lng: -104.990_25,
  address: {
    id: 123_456,
    address1: "1600 Pennsylvania Street",
    address2: "Apt 12",
    city: "Denver",
    state: "CO",
    zip: "80203",
    formattedAddress: "1600 Pennsylvania Street, Apt 12, Denver, CO 80203",
  },
  customFieldData: JSON.stringify({ roof: "shingle", storeys: 2, "last service": "2025-11-03" }),
};

test("a delivered event costs seven write units, even for a prospect with all its fields", async () => {
  for (const fields of [{}, filled]) {
    const at = await newPipeline(db);
    const change = { before: undefined, after: prospectItem({ ...createdProspect(at.companyId, 4_711), ...fields }) };
    const { usage } = await metered(async () => {
      await publish({ ...at, change });
      await drain(at);
    });
    expect(at.posts).toHaveLength(1);
    expect(await deliveries(at)).toMatchObject([{ state: "delivered" }]);
    expect(usage.writeUnits).toBe(7);
    expect(usage.readUnits).toBeLessThanOrEqual(8);
  }
});

test("a failed attempt costs eight more write units, including two for the health of its webhook", async () => {
  const at = await newPipeline(db);
  at.answers = (_, number) => ({ status: number === 1 ? 500 : 200 });
  const { usage } = await metered(async () => {
    await publish(at);
    await drain(at);
  });
  expect(at.posts).toHaveLength(2);
  // In addition to the 7 write units of a delivered event, the failed attempt costs 6: 2 for the row of the concurrency limiter, 1 for the
  // row of the attempt, and 3 to schedule the next attempt. The state of the webhook costs 2 more, one for the failure and one for the
  // recovery.
  expect(usage.writeUnits).toBe(7 + 6 + 2);
});

test("a packed body is unpacked byte for byte", async () => {
  const at = await newPipeline(db);
  await publish(at);
  const [delivery] = await deliveries(at);
  if (delivery?.body === undefined) throw new Error("no delivery");
  const { body } = delivery;
  const bytes = packedBody(body);
  expect(bytes.length).toBeLessThan(body.length / 2);
  for (const text of [body, "", "ä\u{1F600}\u2028", "x".repeat(100_000)]) {
    expect(unpackedBody(packedBody(text))).toBe(text);
  }
  expect(deliveryItem(delivery).body).toEqual(bytes);
  expect(() => unpackedBody(Buffer.of(9, 1, 2))).toThrow("not known");
});
