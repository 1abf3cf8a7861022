/** Tests that the service can send a correctly signed request for every event name, secret and URL that a tenant can store. */
import { createHmac } from "node:crypto";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { post } from "#shared/outbound/post.ts";
import { assertTarget } from "#shared/outbound/public-url.ts";
import { headerValue } from "#shared/webhooks/deliver/headers.ts";
import { requestOf } from "#shared/webhooks/deliver/request.ts";
import { NewRegistration, SecretChoice, WebhookPatch } from "#shared/webhooks/subscriptions/schema.ts";
import { closeAfterEach, http } from "../harness/listening.ts";

interface Got {
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}
const nothing: Got = { headers: {}, body: "" };
let got = nothing;
closeAfterEach();

const hostile = [
  ...["a\r\nX-Evil: 1", "naïve ☃", "👩‍👩‍👧", "50%", "%0d%0a", " a ", ":", "prospect.created"],
  ...["\u0000", "\u007f", "\u2028", "\ufeff"],
];
const isSaved = (schema: z.ZodMiniType, value: unknown): boolean => z.safeParse(schema, value).success;
const anyText = fc.oneof(
  fc.constantFrom(...hostile),
  fc.string({ unit: "binary", maxLength: 128 }),
  fc.string({ maxLength: 128 }),
);
const events = anyText.filter((event) => isSaved(NewRegistration, { event }));
const secrets = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 16, maxLength: 100 }),
    fc.string({ unit: "binary", minLength: 16, maxLength: 100 }),
    fc.uint8Array({ minLength: 24, maxLength: 64 }).map((bytes) => `whsec_${Buffer.from(bytes).toString("base64")}`),
  )
  .filter((secretKey) => isSaved(SecretChoice, { secretKey }));
const paths = fc.oneof(
  anyText,
  fc.webPath(),
  fc.webQueryParameters().map((query) => `?${query}`),
  fc.constantFrom("?a=b c", "#x", "\\..\\", "//", "?%"),
);

test("every event name, secret and URL that may be saved leads to a request whose signature is valid", async () => {
  const { url: root } = await http(async (response, request) => {
    got = { headers: request.headers, body: await text(request) };
    response.end();
  });
  await fc.assert(
    fc.asyncProperty(
      events,
      secrets,
      paths,
      fc.json({ stringUnit: "grapheme" }),
      async (event, secretKey, path, body) => {
        const url = `${root}${path}`;
        fc.pre(isSaved(WebhookPatch, { url }));
        await assertTarget(url, "local");
        got = nothing;
        const request = requestOf(url, { secretKey }, { id: "dlv_1", event, attempt: 1 }, body, Date.now());
        expect(await post(request, "local")).toMatchObject({ status: 200, error: null });
        const { headers, body: received } = got;
        expect(received).toBe(body);
        expect(decodeURIComponent(String(headers["x-service-event"]))).toBe(event);
        expect(headers["x-service-event"]).toMatch(/^[\x21-\x7e]*$/);
        expect(headers).not.toHaveProperty("x-evil");
        expect(headers["x-service-signature"]).toBe(createHmac("sha256", secretKey).update(received).digest("hex"));
        const key = secretKey.startsWith("whsec_") ? secretKey : Buffer.from(secretKey).toString("base64");
        expect(() => new StandardWebhook(key).verify(received, JSON.parse(JSON.stringify(headers)))).not.toThrow();
      },
    ),
    { numRuns: 200 },
  );
});

test("the encoding of an event name as a header value does not change names of the catalogue", () => {
  expect(headerValue("prospect.status_changed")).toBe("prospect.status_changed");
  expect(headerValue("a\r\nb %")).toBe("a%0D%0Ab%20%25");
  // The schemas reject a text with a lone surrogate, so the service never stores one. `headerValue` must not throw for such a text either.
  expect(headerValue("\ud800")).toBe("%EF%BF%BD");
});
