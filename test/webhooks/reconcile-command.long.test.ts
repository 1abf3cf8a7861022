/** Tests that the reconcile command prints the counts of a company's deliveries, and that its exit code says whether it found a fault. */
import { expect, test } from "vitest";
import * as keys from "#shared/db/keys.ts";
import { present } from "../harness/shapes.ts";
import { tableCommand, target } from "../harness/table-command.ts";
import { DeliverySimulation } from "./delivery-simulation.ts";
import { deliveriesOf } from "./stored-deliveries.ts";

const { db, run } = tableCommand("infra/cli/webhooks.ts");

test("the command prints the counts, and exits with 1 if it finds a fault", async () => {
  // The command reads the real clock, so the deliveries need real times.
  const now = new DeliverySimulation(db, 10);
  now.clock = Date.now();
  const fresh = await now.hook();
  await now.publish(fresh, 1, 3);
  await now.runUntil(now.clock + 2_000);
  const lost = present((await deliveriesOf(db, fresh))[0]);
  const sound = await run("reconcile", "--company", String(fresh.companyId));
  await db.direct.batchRemove([keys.delivery(lost.companyId, lost.webhookId, lost.id)]);
  const [faulty, unknown, wrong] = await Promise.all([
    run("reconcile", "--company", String(fresh.companyId)),
    run("reconcile", "--company", "999999999"),
    run("reconcile"),
  ]);
  expect(faulty.code).toBe(1);
  expect(faulty.stdout).toContain(`${lost.id}: is expected and has no row\n`);
  expect(faulty.stdout).toMatch(/\nmatched +3\n= delivered +2\n\+ waiting +0\n/);
  expect(sound).toMatchObject({ code: 0, stderr: target });
  expect(sound.stdout).toMatch(/^company \d+\nmatched +3\n= delivered +3\n[\s\S]*faults +0\n$/);
  expect(unknown).toMatchObject({ code: 1, stdout: "" });
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("npm run webhooks -- reconcile --company N");
});
