/** Tests `npm run company` on a running service: suspend, resume, check, and a delete that is refused. */
import { expect, test } from "vitest";
import { flushAuthorizers } from "../../harness/client.ts";
import { dataOf } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { runOnService } from "./command-process.ts";

const as = await newTeam();
const { company } = dataOf(await as.owner.GET("/api/me"), 200);
const number = String(company.id);

test("a suspended company's users are refused until it is resumed, and it cannot be deleted at once", async () => {
  const suspended = await runOnService("company.ts", "suspend", "--company", number);
  expect(suspended).toMatchObject({
    status: 0,
    stdout: `company ${number} is suspended: the API refuses requests of its 6 users\n`,
  });
  await flushAuthorizers();
  expect((await as.owner.GET("/api/me")).response.status).toBe(401);
  expect((await as.otherOwner.GET("/api/me")).response.status).toBe(200);
  const early = await runOnService("company.ts", "delete", "--company", number, "--confirm", company.name);
  expect(early.status).toBe(1);
  expect(early.stderr).toMatch(
    /^target: local service at http:\S+\nrequests from before the suspension may run until 20\S+Z: try again then\n$/,
  );
  const resumed = await runOnService("company.ts", "resume", "--company", number);
  expect(resumed).toMatchObject({
    status: 0,
    stdout: `company ${number} is active: the API accepts requests of its 6 users\n`,
  });
  expect((await as.owner.GET("/api/me")).response.status).toBe(200);
});

test("check counts what the company has", async () => {
  const found = await runOnService("company.ts", "check", "--company", number);
  expect(found.status).toBe(1);
  expect(JSON.parse(found.stdout)).toMatchObject({ erasedAt: null, rowsLeft: { company: 1, user: 6 } });
});

test("check of an id that no company ever had is no proof of an erasure", async () => {
  const unknown = await runOnService("company.ts", "check", "--company", "9999999");
  expect(unknown).toMatchObject({ status: 1, stdout: "" });
  expect(unknown.stderr).toContain("there is no company 9999999, and no erasure of it is recorded: check the id\n");
});
