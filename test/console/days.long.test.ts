/** Tests that the field mode loses nothing and does nothing twice on 200 random days, or on DAYS of them. DAY_SEED runs one day again. */
import { inject, test } from "vitest";
import { type Days, startDays } from "./days.ts";
import { browserForAll } from "./visit.ts";

const DAYS = Number(process.env.DAYS ?? 200);
const only = process.env.DAY_SEED;
const seeds =
  only === undefined ? Array.from({ length: DAYS }, (_, day) => (inject("seed") + day) >>> 0) : [Number(only)];

const browser = browserForAll(async () => undefined);

test("after random days with a bad connection, the phones and the service have the same, and each change once", {
  timeout: 4 * 3_600_000,
}, async () => {
  let days: Days | undefined;
  for (const [day, seed] of seeds.entries()) {
    console.info(`day ${day + 1}: DAY_SEED=${seed}`);
    // Each ten days, a new rep begins with new phones.
    if (days === undefined || day % 10 === 0) {
      await days?.end();
      days = await startDays(browser());
    }
    await days.run(seed);
  }
  await days?.end();
});
