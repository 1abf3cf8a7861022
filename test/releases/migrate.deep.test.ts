/**
 * Tests `npm run migrate -- run` while a company is in use. No request may fail, no event may be sent, and the command must continue after
 * it was killed.
 */
import { afterAll, expect, test } from "vitest";
import { baseUrl } from "../harness/client.ts";
import { newTeam } from "../harness/team.ts";
import { type BusyCompany, busyCompany } from "./busy-migration.ts";

let company: BusyCompany | undefined;
afterAll(() => company?.stop());

test("rows get the new shape while users work: no request fails and no event is sent", async () => {
  const { owner } = await newTeam();
  company = await busyCompany(baseUrl(), owner);
  const old = await company.run("infra/cli/migrate.ts", "rollback", "--company", company.id);
  expect(old).toContain("shape 1, completed");
  expect(await company.shapes()).toEqual(new Set([1]));
  await company.migrate({ command: "run", shape: 2 });
});
