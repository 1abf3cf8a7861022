/**
 * Tests that a body is refused if it has an integer that a double cannot represent, or is not UTF-8. Every other number and text is stored
 * as it was sent.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { exactNumbers, readJson } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import { json } from "../harness/client.ts";
import { bodyOf, dataOf, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { sized } from "../harness/tier.ts";
import { create, operation } from "../sync/operations/push.ts";

const as = await newTeam();
const { id } = dataOf(await as.owner.POST("/api/prospects", { body: { name: "before" } }), 201);
const { send } = as.owner;
const written = (number: string): string => `{"customFieldData":{"a":[{"b~/":${number}}]}}`;

test.each(["9007199254740992", "-9007199254740993", "123456789012345678901234567890", "1".padEnd(400, "0")])(
  "%s is refused in a new prospect, a patch and an operation, with a pointer",
  async (number) => {
    for (const [method, path] of [
      ["POST", "/api/prospects"],
      ["PATCH", `/api/prospects/${id}`],
    ] as const) {
      const answer = await send(method, path, { headers: json, body: written(number) });
      const pointer = "/customFieldData/a/0/b~0~1";
      const message = expect.stringContaining("send it as a text");
      expect(problemOf(answer, 400, "validation_failed")).toMatchObject([{ pointer, message }]);
    }
    for (const one of [create(), operation("prospect.update", { id })]) {
      const text = JSON.stringify({ deviceId: "t", operations: [{ ...one, fields: 7 }] });
      const body = text.replace('"fields":7', () => `"fields":${written(number)}`);
      const results = bodyOf(await send("POST", "/api/sync/operations", { headers: json, body }), 200, z.unknown());
      const errors = [{ pointer: "/operations/0/fields/customFieldData/a/0/b~0~1" }];
      expect(results).toMatchObject({ results: [{ outcome: "rejected", problem: { errors } }] });
    }
  },
);

test.each(["9007199254740991", "-9007199254740991", "1e20", "12345678901234567890.5", "1.5e300", '"9007199254740993"'])(
  "%s is stored",
  async (number) => {
    const body = written(number);
    const { customFieldData } = bodyOf(
      await send("PATCH", `/api/prospects/${id}`, { headers: json, body }),
      200,
      z.object({ customFieldData: z.unknown() }),
    );
    expect({ customFieldData }).toEqual(JSON.parse(body));
  },
);

test("the event filter of a registration and unknown fields may contain large integers", async () => {
  const long = "12345678901234567890";
  const registration = `{"event":"prospect.created","filter":{"prospect.id":${long}}}`;
  const body = `{"name":"w","url":"https://example.com/","more":${long},"registrations":[${registration}]}`;
  bodyOf(await send("POST", "/api/webhooks", { headers: json, body }), 201, z.unknown());
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

test("deeply nested arrays beside a long number are malformed, and 40 000 long numbers in an unknown field are accepted", async () => {
  const nested = `{"a":12345678901234567890,"b":${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
  problemOf(await send("POST", "/api/prospects", { headers: json, body: nested }), 400, "malformed_json");
  const many = `{"more":[${"12345678901234567890,".repeat(40_000)}1]}`;
  expect((await send("POST", "/api/prospects", { headers: json, body: many })).status).toBe(201);
});

const path = `/api/prospects/${id}`;
const types = ["application/json", "Application/JSON; charset=utf-8", "application/json;charset=iso-8859-1"];
const around = (bytes: readonly number[]): Buffer =>
  Buffer.concat([Buffer.from('{"name":"x'), Uint8Array.from(bytes), Buffer.from('y"}')]);
const sendAs = (type: string, bytes: readonly number[]) =>
  send("PATCH", path, { headers: { "Content-Type": type }, body: around(bytes) });
const nameOf = async () => dataOf(await as.owner.GET("/api/prospects/{id}", { params: { path: { id } } })).name;

/** Returns the UTF-8 bytes of a code point. Unlike an encoder, it also returns bytes for surrogates, which RFC 3629 does not allow. */
function bytesOf(point: number): number[] {
  const tail = (shift: number): number => 0x80 | ((point >> shift) & 0x3f);
  if (point < 0x80) return [point];
  if (point < 0x800) return [0xc0 | (point >> 6), tail(0)];
  if (point < 0x10000) return [0xe0 | (point >> 12), tail(6), tail(0)];
  return [0xf0 | (point >> 18), tail(12), tail(6), tail(0)];
}

const long = [0xe9, 0x20ac, 0xfffd, 0xd7ff, 0xe000, 0x1f3e0, 0x10ffff].map(bytesOf);
const broken = [
  ...long.flatMap((bytes) => bytes.slice(1).map((_, i) => bytes.slice(0, i + 1))),
  ...long.map((bytes) => bytes.slice(1)),
  ...[0xd800, 0xdbff, 0xdc00, 0xdfff].map(bytesOf),
  [...bytesOf(0xd83c), ...bytesOf(0xdfe0)],
  ...["c080", "c1bf", "e09fbf", "f08fbfbf", "f4908080", "f888808080", "ff", "fe", "80"].map((hex) => [
    ...Buffer.from(hex, "hex"),
  ]),
];

test.each(broken.map((bytes) => [Buffer.from(bytes).toString("hex"), bytes] as const))(
  "%s is malformed, whatever the charset of the media type",
  async (_, bytes) => {
    for (const type of types) problemOf(await sendAs(type, bytes), 400, "malformed_json");
    expect(await nameOf()).toBe("before");
  },
);

test("a text is stored exactly if its bytes are UTF-8", { tags: "sized" }, async () => {
  const { id: other } = dataOf(await as.owner.POST("/api/prospects", { body: {} }), 201);
  const point = fc.integer({ min: 0x80, max: 0x10ffff }).filter((it) => it < 0xd800 || it > 0xdfff);
  const piece = fc.oneof(point.map(bytesOf), fc.constantFrom(...broken, ...long, [0x61]));
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 4 }), async (pieces) => {
      const bytes = pieces.flat();
      const answer = await send("PATCH", `/api/prospects/${other}`, { headers: json, body: around(bytes) });
      const text = Buffer.from(bytes).toString();
      const isUtf8 = Buffer.from(text).equals(Buffer.from(bytes));
      if (!isUtf8) problemOf(answer, 400, "malformed_json");
      else expect(bodyOf(answer, 200, z.object({ name: z.string() })).name).toBe(`x${text}y`);
    }),
    { numRuns: sized({ short: 20, wide: 300 }) },
  );
});

test("GeoJSON and a body of operations are refused too, and a body of 1 MB is accepted", async () => {
  const geojson = { "Content-Type": "application/geo+json" };
  const feature = Buffer.from('{"type":"FeatureCollection","features":[],"name":"\u00e9"}', "latin1");
  problemOf(await send("POST", "/api/territories/import", { headers: geojson, body: feature }), 400, "malformed_json");
  const operations = Buffer.from('{"deviceId":"\u00e9","operations":[]}', "latin1");
  problemOf(await send("POST", "/api/sync/operations", { headers: json, body: operations }), 400, "malformed_json");
  const start = '{"name":"é","more":" ';
  const most = `${start}${"é".repeat((1_000_000 - Buffer.byteLength(start) - 2) / 2)}"}`;
  expect(Buffer.byteLength(most)).toBe(limits.bodyBytes);
  bodyOf(await send("POST", "/api/prospects", { headers: json, body: most }), 201, z.object({ name: z.literal("é") }));
  for (const tooLarge of [`${most} `, most.padEnd(5_000_000), most.padEnd(11_000_000)]) {
    problemOf(await send("POST", "/api/prospects", { headers: json, body: tooLarge }), 413, "payload_too_large");
  }
});

test("another media type gives 415, and a charset is accepted", async () => {
  const sentAs = (type: string) => send("POST", "/api/prospects", { headers: { "Content-Type": type }, body: "{}" });
  for (const type of ["text/plain", "application/problem+json", "application/jsonp"]) {
    problemOf(await sentAs(type), 415, "unsupported_media_type");
  }
  expect((await sentAs("application/json; charset=utf-8")).status).toBe(201);
});

test("an answer is a text, whatever the request accepts", async () => {
  const read = async (Accept: string) =>
    bodyOf(await send("GET", path, { headers: { Accept } }), 200, z.object({ name: z.string() }));
  for (const type of ["application/json", "application/geo+json", "*/*"])
    expect((await read(type)).name).toBe("before");
});
