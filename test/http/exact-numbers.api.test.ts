/** Tests that an integer that a double cannot represent is refused in `customFieldData`, and that all other numbers are stored. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { exactNumbers, readJson } from "#shared/json.ts";
import { send, tokenOf } from "../harness/client.ts";
import { bodyOf, dataOf, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { create, operation } from "../sync/operations/push.ts";

const as = await newTeam();
const { id } = dataOf(await as.owner.POST("/api/prospects", { body: {} }), 201);
const headers = { Authorization: `Bearer ${await tokenOf(as.owner.email)}`, "Content-Type": "application/json" };
const written = (number: string): string => `{"customFieldData":{"a":[{"b~/":${number}}]}}`;

test.each(["9007199254740992", "-9007199254740993", "123456789012345678901234567890", "1".padEnd(400, "0")])(
  "%s is refused in a new prospect, a patch and an operation, with a pointer",
  async (number) => {
    for (const [method, path] of [
      ["POST", "/api/prospects"],
      ["PATCH", `/api/prospects/${id}`],
    ] as const) {
      const faults = problemOf(await send(method, path, { headers, body: written(number) }), 400, "validation_failed");
      expect(faults).toMatchObject([
        { pointer: "/customFieldData/a/0/b~0~1", message: expect.stringContaining("send it as a text") },
      ]);
    }
    for (const one of [create(), operation("prospect.update", { id })]) {
      const text = JSON.stringify({ deviceId: "t", operations: [{ ...one, fields: 7 }] });
      const body = text.replace('"fields":7', () => `"fields":${written(number)}`);
      const results = bodyOf(await send("POST", "/api/sync/operations", { headers, body }), 200, z.unknown());
      expect(results).toMatchObject({
        results: [
          { outcome: "rejected", problem: { errors: [{ pointer: "/operations/0/fields/customFieldData/a/0/b~0~1" }] } },
        ],
      });
    }
  },
);

test.each(["9007199254740991", "-9007199254740991", "1e20", "12345678901234567890.5", "1.5e300", '"9007199254740993"'])(
  "%s is stored",
  async (number) => {
    const body = written(number);
    const { customFieldData } = bodyOf(
      await send("PATCH", `/api/prospects/${id}`, { headers, body }),
      200,
      z.object({ customFieldData: z.unknown() }),
    );
    expect({ customFieldData }).toEqual(JSON.parse(body));
  },
);

test("the event filter of a registration and unknown fields may contain large integers", async () => {
  const body =
    '{"name":"w","url":"https://example.com/","more":12345678901234567890,"registrations":[{"event":"prospect.created","filter":{"prospect.id":12345678901234567890}}]}';
  bodyOf(await send("POST", "/api/webhooks", { headers, body }), 201, z.unknown());
});

test("a number has a fault exactly if it is an integer beyond 2^53 - 1, or too large", () => {
  const digits = fc.bigInt({ min: -(2n ** 60n), max: 2n ** 60n });
  const near = fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n });
  const fraction = fc.constantFrom("", "", ".0", ".5", "e0", "E+1", "e-1", ".25e2", "e999");
  const places = fc.constantFrom(
    (text: string) => `{"a":${text}}`,
    (text: string) => `{"a":[1,{"a":${text}}]}`,
  );
  const Custom = z.custom<Record<string, unknown>>(() => true).check(exactNumbers);
  fc.assert(
    fc.property(
      fc.oneof(
        digits,
        near,
        near.map((n) => -n),
      ),
      fraction,
      places,
      (whole, rest, place) => {
        const isBeyond = rest === "" && (whole > 2n ** 53n - 1n || whole < 1n - 2n ** 53n);
        const isInfinite = rest === "e999" && whole !== 0n;
        expect(Custom.safeParse(readJson(place(`${whole}${rest}`))).success).toBe(!isBeyond && !isInfinite);
      },
    ),
  );
});

test("a body of many long numbers and of deep arrays is answered as before", async () => {
  const nested = "[".repeat(20_000) + "]".repeat(20_000);
  for (const body of [nested, `{"a":12345678901234567890,"b":${nested}}`]) {
    problemOf(await send("POST", "/api/prospects", { headers, body }), 400, "malformed_json");
  }
  const many = `{"more":[${"12345678901234567890,".repeat(40_000)}1]}`;
  expect((await send("POST", "/api/prospects", { headers, body: many })).status).toBe(201);
});
