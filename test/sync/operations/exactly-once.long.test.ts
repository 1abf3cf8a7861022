/** Tests with 10 000 operations what exactly-once.api.test.ts tests with fewer operations. */
import { test } from "vitest";
import { dataOf } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { pushedExactlyOnce } from "./exactly-once.ts";

const as = await newTeam();
const statusIds = dataOf(await as.admin.GET("/api/statuses")).map(({ id }) => id);

test("each of 10 000 operations has its effect once, although each batch is sent up to six times", async () => {
  await pushedExactlyOnce(as.rep, statusIds, { prospects: 2_000, batch: 170 });
}, 3_600_000);
