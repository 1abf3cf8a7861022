/**
 * Tests that a function decodes the caller as the authorizer has encoded it, which Authorization headers match the pattern of API Gateway,
 * and which throttle key, by which API Gateway limits the request rate, a company gets.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { CallerContext, contextOf } from "#shared/auth/caller.ts";
import { REFUSED, THROTTLE_KEYS, throttleKey, throttleSlot } from "#shared/auth/throttle-key.ts";
import { BEARER_PATTERN, bearerToken } from "#shared/auth/token.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { handler } from "../../functions/me.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";

const caller = fc.record({
  companyId: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  userId: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  role: fc.constantFrom(...Role.options),
  permissions: fc.uniqueArray(fc.constantFrom(...Permission.options)),
});

describe("the caller's context", () => {
  test("is encoded as text without empty fields, and is decoded to the same caller", () => {
    fc.assert(
      fc.property(caller, (given) => {
        const context = contextOf(given);
        for (const value of Object.values(context)) expect(value).toMatch(/^.+$/);
        // API Gateway adds fields to the authorizer's context. A function must ignore them when it decodes the caller.
        expect(CallerContext.parse({ ...context, principalId: "x", integrationLatency: 1 })).toEqual(given);
      }),
    );
  });

  const sound = { companyId: "1", userId: "2", rights: "sales" };
  test.each([
    undefined,
    null,
    {},
    { ...sound, companyId: "0" },
    { ...sound, companyId: "1e3" },
    { ...sound, companyId: "-1" },
    { ...sound, companyId: 1 },
    { ...sound, userId: " 2" },
    { ...sound, rights: "" },
    { ...sound, rights: "boss" },
    { ...sound, rights: "sales canDoAnything" },
    { ...sound, rights: "sales  canManageProspects" },
  ])("%j is no caller, so the function answers 500 and does nothing", async (authorizer) => {
    expect(z.safeParse(CallerContext, authorizer).success).toBe(false);
    const { statusCode, body } = await handler(proxyEvent(authorizer), lambdaContext);
    expect([statusCode, JSON.parse(body)]).toMatchObject([500, { code: "internal" }]);
  });
});

describe("the pattern that the gateway checks", () => {
  const pattern = new RegExp(BEARER_PATTERN);

  test.each([
    ...["", "Bearer", "Bearer ", "a.b.c", "Basic a.b.c", "Bearera.b.c", "Bearer\ta.b.c"],
    ...["Bearer a.b.c ", " Bearer a.b.c"],
    ...["Bearer a.b.", "Bearer .b.c", "Bearer a..c", "Bearer ..", "Bearer a.b", "Bearer a.b.c.d", "Bearer a.b.c d.e.f"],
    ...["Bearer a.b.c, Bearer a.b.c", "Bearer a.b.c\n", "Bearer a.b.c=", "Bearer a.b.ć", "Bearer Bearer a.b.c"],
    "Bearer a.b.c\nBearer a.b.c",
  ])("refuses %j", (header) => {
    expect(pattern.test(header)).toBe(false);
    expect(bearerToken(header)).toBeUndefined();
  });

  test("accepts a token of any length, because the authorizer rejects tokens above 8 192 characters", () => {
    const token = (length: number): string => `a.b.${"c".repeat(length - 4)}`;
    expect(bearerToken(`Bearer ${token(8_192)}`)).toBe(token(8_192));
    expect(bearerToken(`Bearer ${token(8_193)}`)).toBeUndefined();
  });

  test("takes time linear in the length of any header", () => {
    // A pattern that backtracks would need far too long for headers of this length.
    for (const part of ["a", "Bearer ", "a.", ".", " "])
      expect(pattern.test(`Bearer ${part.repeat(200_000)}`)).toBe(false);
  });
});

/** The ids of companies that `npm run company` creates are multiples of 128, so the test spreads such ids over the throttle keys. */
const ids = Array.from({ length: 3_200 }, (_, i) => (i + 1) * 128);

test("companies are spread evenly over all throttle keys, and none has the key of refused tokens", () => {
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(throttleSlot(id), (counts.get(throttleSlot(id)) ?? 0) + 1);
  expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual(Array.from({ length: THROTTLE_KEYS }, (_, i) => i + 1));
  expect(counts.has(REFUSED)).toBe(false);
  for (const count of counts.values()) {
    expect(count).toBeGreaterThan(50);
    expect(count).toBeLessThan(150);
  }
});

test("a company has the same throttle key in each process, also if its id has more than 32 bits", () => {
  expect(throttleSlot(128)).toBe(throttleSlot(128));
  const large = [2 ** 40, 2 ** 41, 2 ** 42, 2 ** 43].map((id) => throttleSlot(id + 5));
  expect(new Set(large).size).toBeGreaterThan(1);
  for (const slot of large) expect(slot).toBeGreaterThan(0);
});

test("a throttle key consists of 20 to 128 letters and digits", () => {
  for (const slot of [REFUSED, 7, THROTTLE_KEYS]) {
    expect(throttleKey("canvassing0a1b2c3dthrottle", slot)).toMatch(/^[A-Za-z0-9]{20,128}$/);
  }
});
