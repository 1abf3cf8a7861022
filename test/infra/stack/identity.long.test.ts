/**
 * Tests the settings of the Cognito user pool: the attributes that users may write, changes of e-mail addresses, and the sender of mail.
 */
import { expect, it } from "vitest";
import { readConfig } from "../../../infra/settings/config.ts";
import { at, ownIdentity, synthesized } from "../template.ts";

const sesIdentity = "arn:aws:ses:eu-west-1:123456789012:identity/example.com";

it("the client may write no attribute that the service uses; an e-mail address is valid until the new one is verified", async () => {
  const template = await synthesized();
  const { properties: client } = template.only("AWS::Cognito::UserPoolClient");
  // If the list were empty, Cognito would let users write all standard attributes. The list therefore contains one attribute that the
  // service does not use.
  expect(client.WriteAttributes).toEqual(["locale"]);
  const { properties: pool } = template.only("AWS::Cognito::UserPool");
  expect(at(pool, "UserAttributeUpdateSettings", "AttributesRequireVerificationBeforeUpdate")).toEqual(["email"]);
  // Users may write every attribute that the schema requires, so the schema must not require any.
  expect(pool.Schema).toBeUndefined();
  expect(pool.EmailConfiguration).toBeUndefined();
});

it.each([
  ["no-reply@example.com", sesIdentity],
  ["Acme <no-reply@mail.example.com>", sesIdentity],
  ["Acme <No-Reply@example.com>", `${sesIdentity.split("/")[0]}/no-reply@example.com`],
])("sends its mail through SES as %s by %s", async (from, identity) => {
  const template = await synthesized({ ...ownIdentity, ...readConfig({ mailFrom: from, sesIdentity: identity }) });
  const { properties: pool } = template.only("AWS::Cognito::UserPool");
  const sender = { EmailSendingAccount: "DEVELOPER", From: from, SourceArn: identity };
  expect(pool.EmailConfiguration).toEqual(sender);
});
