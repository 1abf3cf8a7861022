/** Tests that the field mode loses nothing and does nothing twice on ten random days. `days.long` runs 200. */
import { expect, inject, test } from "vitest";
import { type Days, startDays } from "./days.ts";
import { browserForAll } from "./visit.ts";

let days: Days;
browserForAll(async (browser) => {
  days = await startDays(browser);
});

test.for([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])(
  "after the random day %i with a bad connection, both phones and the service have the same, and each change once",
  async (day) => {
    const seed = (inject("seed") + day) >>> 0;
    console.info(`DAY_SEED=${seed}`);
    await expect(days.run(seed)).resolves.toBeUndefined();
  },
);
