/**
 * Tests `npm run migrate -- rollback` while a company is in use. A rollback to the old shape has two steps: first a deployment with
 * `prospectShape=1`, whose functions write the old shape, and then this command. The service of this test has the same setting.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiClient } from "../../docs/client/client.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { present } from "../harness/shapes.ts";
import { type BusyCompany, busyCompany } from "./busy-migration.ts";

let service: LocalService;
let company: BusyCompany | undefined;
beforeAll(async () => {
  service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo: true, prospectShape: 1 });
});
afterAll(async () => {
  company?.stop();
  await service.stop();
});

test("rows get the old shape back while users work: no request fails and no event is sent", async () => {
  const token = present(await service.tokenOf("owner@acme.test"));
  company = await busyCompany(service.url, apiClient({ baseUrl: service.url, accessToken: () => token }));
  expect(await company.shapes()).toEqual(new Set([1]));
  const migrated = await company.run("infra/cli/migrate.ts", "run", "--company", company.id);
  expect(migrated).toContain("shape 2, completed");
  expect(await company.shapes()).toEqual(new Set([2]));
  await company.migrate({ command: "rollback", shape: 1 });
});
