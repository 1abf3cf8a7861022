/**
 * Tests that an inviter can choose the subject of a new user. The service allows this only with an external issuer, and the local issuer
 * counts as one.
 */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { clientOf } from "../harness/client.ts";
import { bodyOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const newUser = (more: object) => ({
  email: `${uniqueName()}@x.test`,
  firstName: "Nina",
  lastName: "New",
  role: "sales",
  ...more,
});

test("a subject belongs to one user of the service, and no answer shows the subject", async () => {
  const sub = `auth0|${uniqueName()}`;
  const input = newUser({ sub });
  const answer = await as.admin("POST", "/api/users", input);
  const { id } = bodyOf(answer, 201, Identified);
  expect(answer.text).not.toContain(sub);
  const Me = z.object({ user: Identified });
  expect(bodyOf(await clientOf(input.email)("GET", "/api/me"), 200, Me).user.id).toBe(id);
  for (const client of [as.admin, as.otherOwner]) {
    const again = await client("POST", "/api/users", newUser({ sub }));
    problemOf(again, 409, "conflict");
    expect(again.text).not.toContain(sub);
  }
});

test.each(["", "x".repeat(256), "é", "a\nb", 7, null])("the subject %j is refused", async (sub) => {
  const faults = problemOf(await as.admin("POST", "/api/users", newUser({ sub })), 400, "validation_failed");
  expect(faults.map(({ pointer }) => pointer)).toEqual(["/sub"]);
});
