/** Tests that the field mode loses nothing and does nothing twice on random days. `days.long` runs many more of them. */
import { expect, inject, test } from "vitest";
import { type Days, startDays } from "./days.ts";
import { browserForAll } from "./visit.ts";

let days: Days;
browserForAll(async (browser) => {
  days = await startDays(browser);
});

test("after a random day with a bad connection, both phones and the service have the same, and each change once", async () => {
  const seed = inject("seed");
  console.info(`the seed of the day: ${seed}`);
  await expect(days.run(seed)).resolves.toBeUndefined();
});
