/** Tests that independent verifiers accept the signature of a delivery for its exact bytes only, also during a rotation of the secret. */
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { signatureHeaders } from "#shared/webhooks/deliver/request.ts";
import { SecretChoice } from "#shared/webhooks/subscriptions/schema.ts";
import { maskOf } from "#shared/webhooks/subscriptions/secret.ts";

type SignatureHeaders = ReturnType<typeof signatureHeaders>;

const DAY = 86_400_000;

/** The check of the service's own signature that docs/webhooks.md recommends to receivers. */
function bySecret(headers: SignatureHeaders, body: Buffer, secret: string): boolean {
  const digest = createHmac("sha256", Buffer.from(secret, "utf8")).update(body).digest("hex");
  return [headers["X-Service-Signature"], headers["X-Service-Signature-Previous"]].includes(digest);
}

function byPackage(headers: SignatureHeaders, body: Buffer, secret: string): boolean {
  const key = secret.startsWith("whsec_") ? secret : Buffer.from(secret, "utf8").toString("base64");
  try {
    new StandardWebhook(key).verify(body, { ...headers });
    return true;
  } catch {
    return false;
  }
}

const verdicts = (headers: SignatureHeaders, body: Buffer, secret: string): boolean[] =>
  [bySecret, byPackage].map((verify) => verify(headers, body, secret));
const [yes, no] = [
  [true, true],
  [false, false],
];

const plain = fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }).filter((text) => !text.startsWith("whsec_"));
const standard = fc
  .uint8Array({ minLength: 1, maxLength: 64 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString("base64")}`);
/** HMAC pads keys with zeros, so keys that differ only in zero bytes at the end make the same signature. */
const keyOf = (secret: string): string =>
  Buffer.from(secret.replace(/^whsec_/, ""), secret.startsWith("whsec_") ? "base64" : "utf8")
    .toString("hex")
    .replace(/(00)+$/, "");
const secrets = fc.uniqueArray(fc.oneof(plain, standard), { minLength: 3, maxLength: 3, selector: keyOf });
const json = fc.json({ stringUnit: "grapheme" });

describe("signatures with plain and whsec_ secrets are verified by the npm package standardwebhooks and by node:crypto", () => {
  test("alone, for the exact bytes and no others", () => {
    fc.assert(
      fc.property(secrets, json, ([secretKey = "", other = ""], body) => {
        const headers = signatureHeaders({ secretKey }, "dlv_1", body, Date.now());
        expect(verdicts(headers, Buffer.from(body), secretKey)).toEqual(yes);
        expect(verdicts(headers, Buffer.from(body), other)).toEqual(no);
        expect(verdicts(headers, Buffer.from(`${body} `), secretKey)).toEqual(no);
        expect(headers).not.toHaveProperty("X-Service-Signature-Previous");
      }),
    );
  });

  test("during a rotation, with the new and the old secret and no third one", () => {
    fc.assert(
      fc.property(secrets, json, ([secretKey = "", old = "", other = ""], body) => {
        const now = Date.now();
        const previousSecret = { secretKey: old, until: new Date(now + DAY).toISOString() };
        const headers = signatureHeaders({ secretKey, previousSecret }, "dlv_1", body, now);
        for (const secret of [secretKey, old]) expect(verdicts(headers, Buffer.from(body), secret)).toEqual(yes);
        expect(verdicts(headers, Buffer.from(body), other)).toEqual(no);
      }),
    );
  });
});

test("the signature depends on the id and on the time", () => {
  const now = Date.now();
  const headers = signatureHeaders({ secretKey: "secret" }, "dlv_1", "{}", now);
  const body = Buffer.from("{}");
  for (const changed of [{ "webhook-id": "dlv_2" }, { "webhook-timestamp": String(Math.floor(now / 1_000) - 1) }]) {
    const forged = { ...headers, ...changed };
    expect(byPackage(forged, body, "secret")).toBe(false);
  }
});

test("a mask shows at most four characters and at most a quarter of a secret", () => {
  fc.assert(
    fc.property(fc.oneof(plain, standard), (secret) => {
      const characters = [...secret.replace(/^whsec_/, "")];
      const shown = [...maskOf(secret)].slice(4);
      expect(maskOf(secret)).toBe(`••••${characters.slice(characters.length - shown.length).join("")}`);
      expect(shown.length).toBe(Math.min(4, Math.floor(characters.length / 4)));
    }),
  );
});

test.each([
  ["whsec_", false],
  ["whsec_==========", false],
  ["whsec_this is not base64", false],
  ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true],
  ["whsec_YWJjZGVmZ2g=", false],
  [`whsec_${Buffer.alloc(25, "k").toString("base64")}`, true],
  [`whsec_${Buffer.alloc(25, "k").toString("base64").replace(/=+$/, "")}`, false],
  ["whsec_YQ==", false],
  ["whsec-YWJjZGVmZ2", true],
  ["🔑".repeat(15), false],
  ["🔑".repeat(16), true],
  ["", false],
])("%j may be chosen as a secret: %j", (secretKey, isAllowed) => {
  expect(z.safeParse(SecretChoice, { secretKey }).success).toBe(isAllowed);
});
