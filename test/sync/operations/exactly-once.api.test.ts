/**
 * Tests that operations of POST /api/sync/operations have their effect exactly once when answers are lost and batches are sent several
 * times at once.
 */
import { test } from "vitest";
import { dataOf } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { pushedExactlyOnce } from "./exactly-once.ts";

const as = await newTeam();
const statusIds = dataOf(await as.admin.GET("/api/statuses")).map(({ id }) => id);

test("each of 50 operations has its effect once, although each batch is sent up to six times", async () => {
  await pushedExactlyOnce(as.rep, statusIds, { prospects: 10, batch: 17 });
});
