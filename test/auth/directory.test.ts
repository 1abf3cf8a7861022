/** Tests that the owner of a new company must not have the e-mail address or the subject of another user. */
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";

const db = faultyDynamoDb();

test("an e-mail address or a subject belongs to one user only", async () => {
  const context = contextOn(db.table);
  const owner = { email: "Twice@x.test", firstName: "A", lastName: "B", sub: "subject-2" };
  await createCompany(context, { name: "X", owner });
  const again = [
    { ...owner, sub: "subject-3", email: "twice@X.test" },
    { ...owner, email: "other@x.test" },
  ];
  for (const taken of again) {
    await expect(createCompany(context, { name: "Y", owner: taken })).rejects.toMatchObject({ code: "conflict" });
  }
});
