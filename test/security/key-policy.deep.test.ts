/** Tests the policy of the KMS key that protects webhook secrets and sessions. The test evaluates the policy for requests as KMS does. */
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { at, listed, synthesized } from "../infra/template.ts";

const template = await synthesized();

const Statement = z.strictObject({
  Sid: z.string(),
  Effect: z.literal("Allow"),
  Principal: z.strictObject({ AWS: z.unknown() }),
  Action: z.union([z.string(), z.array(z.string())]),
  Resource: z.literal("*"),
  Condition: z.optional(z.strictObject({ StringEquals: z.record(z.string(), z.string()) })),
});

function statements() {
  const key = Object.entries(template.resources).find(([id]) => id.startsWith("SecretsKey"))?.[1];
  return listed(at(key?.Properties, "KeyPolicy", "Statement")).map((one) => z.parse(Statement, one));
}

/** A request by an IAM role whose own policy allows everything, like that of an administrator. */
interface Request {
  readonly action: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly context?: Readonly<Record<string, string>>;
}

/** Returns true if the key policy allows the request. KMS refuses all other requests, even if IAM allows them. */
const allows = ({ action, tags = {}, context = {} }: Request): boolean =>
  statements().some(({ Action, Condition }) => {
    const values: Readonly<Record<string, string>> = {
      ...Object.fromEntries(Object.entries(tags).map(([name, value]) => [`aws:PrincipalTag/${name}`, value])),
      ...Object.fromEntries(Object.entries(context).map(([name, value]) => [`kms:EncryptionContext:${name}`, value])),
    };
    const isMet = Object.entries(Condition?.StringEquals ?? {}).every(([name, value]) => values[name] === value);
    return listed(Action).includes(action) && isMet;
  });

const tags = { "webhook-secrets": "use" };
const context = { purpose: "webhook-secrets", companyId: "1280" };
const ofCursors = { tags: { "sync-cursors": "use" }, context: { purpose: "sync-cursors", companyId: "1280" } };
const ofSessions = { tags: { "console-sessions": "use" }, context: { purpose: "console-sessions", companyId: "1280" } };

describe("the policy of the key of webhook secrets", () => {
  it("lets roles with the tag of a purpose decrypt data keys of this purpose, and create them", () => {
    for (const role of [{ tags, context }, ofSessions, ofCursors]) {
      for (const action of ["kms:Decrypt", "kms:GenerateDataKey"]) expect(allows({ action, ...role })).toBe(true);
    }
  });

  it.each<[string, Request]>([
    ["an administrator without the tag", { action: "kms:Decrypt", context }],
    ["a role with another value of the tag", { action: "kms:Decrypt", tags: { "webhook-secrets": "no" }, context }],
    ["a role with the tag, for data of another purpose", { action: "kms:Decrypt", tags, context: { purpose: "mail" } }],
    ["a role of webhooks, for data of sessions", { action: "kms:Decrypt", tags, context: ofSessions.context }],
    ["a role of webhooks, for data of cursors", { action: "kms:Decrypt", tags, context: ofCursors.context }],
    ["a role of cursors, for webhook secrets", { action: "kms:Decrypt", tags: ofCursors.tags, context }],
    ["a role of sessions, for webhook secrets", { action: "kms:Decrypt", tags: ofSessions.tags, context }],
    ["a role with the tag, without an encryption context", { action: "kms:Decrypt", tags }],
  ])("lets %s decrypt nothing", (_, request) => {
    expect(allows(request)).toBe(false);
  });

  it.each([
    "kms:CreateGrant",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:Encrypt",
  ])("does not allow %s, by which a right to decrypt could be passed on or the conditions be avoided", (action) => {
    expect(allows({ action, tags, context })).toBe(false);
  });

  it("locks nobody out: the account itself can read and change the policy, and stop a deletion of the key", () => {
    for (const action of ["kms:GetKeyPolicy", "kms:PutKeyPolicy", "kms:CancelKeyDeletion", "kms:EnableKey"]) {
      expect(allows({ action }), action).toBe(true);
    }
  });

  it("names no principal but the account, and no action by a wildcard", () => {
    for (const { Principal, Action } of statements()) {
      expect(JSON.stringify(Principal)).toMatch(
        /"arn:",\{"Ref":"AWS::Partition"\},":iam::",\{"Ref":"AWS::AccountId"\},":root"/,
      );
      for (const action of listed(Action)) expect(String(action)).not.toContain("*");
    }
  });
});
