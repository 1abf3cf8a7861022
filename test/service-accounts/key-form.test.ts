/** Tests the text of an API key: the form, the checksum (against an independent computation), and the id, which no other key has. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as apiKey from "#shared/auth/api-key.ts";
import { BEARER_PATTERN } from "#shared/auth/token.ts";

const DIGITS = [..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"];
const text = (length: number) => fc.string({ unit: fc.constantFrom(...DIGITS), minLength: length, maxLength: length });
const key = text(8).map(apiKey.newKey);

/** Computes CRC-32 (ISO 3309) bit by bit. Returns it in 6 digits of base 62. */
function checksum(of: string): string {
  let crc = 0xffffffffn;
  for (const byte of Buffer.from(of)) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = (crc >> 1n) ^ (crc & 1n ? 0xedb88320n : 0n);
  }
  const value = Number(crc ^ 0xffffffffn);
  return [5, 4, 3, 2, 1, 0].map((power) => DIGITS[Math.floor(value / 62 ** power) % 62]).join("");
}

test("a new key has the documented form, and the checksum of an independent computation", () => {
  fc.assert(
    fc.property(text(8), (id) => {
      const made = apiKey.newKey(id);
      expect(made).toMatch(/^pck_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/);
      expect(made.slice(0, 13)).toBe(`pck_${id}_`);
      expect(made.slice(-6)).toBe(checksum(made.slice(0, -6)));
      expect([apiKey.hasChecksum(made), apiKey.idOf(made), apiKey.keyIn(`Bearer ${made}`)]).toEqual([true, id, made]);
    }),
  );
});

test("any text has exactly one correct checksum", () => {
  fc.assert(
    fc.property(text(8), text(32), text(6), (id, secret, other) => {
      const body = `pck_${id}_${secret}`;
      expect(apiKey.hasChecksum(body + checksum(body))).toBe(true);
      expect(apiKey.hasChecksum(body + other)).toBe(other === checksum(body));
    }),
  );
});

test("the ids of a ring begin with the id of the ring, and an id that is in use, or was until shortly before, is not made again", () => {
  const used = fc.array(fc.subarray(DIGITS, { maxLength: 10 }), { minLength: 5, maxLength: 5 });
  fc.assert(
    fc.property(text(7), fc.nat(10_000), used, (ring, changes, usedAt) => {
      const ids = usedAt.map((letters, i) => {
        const id = apiKey.newKeyId(ring, changes + i, (other) => letters.includes(other.slice(7)));
        expect([apiKey.ringOf(id), id.length, letters.includes(id.slice(7))]).toEqual([ring, 8, false]);
        return id;
      });
      expect(new Set(ids).size).toBe(ids.length);
    }),
  );
});

test("secrets are random over the whole alphabet, and different secrets have different digests", () => {
  const letters = new Set(apiKey.randomText(10_000));
  expect([...letters].toSorted()).toEqual(DIGITS.toSorted());
  const made = Array.from({ length: 1_000 }, () => apiKey.newKey("aaaaaaaa"));
  expect(new Set(made.map(apiKey.digestOf)).size).toBe(made.length);
});

test("a digest equals only itself", () => {
  fc.assert(
    fc.property(key, key, (one, other) => {
      expect(apiKey.digestOf(one)).toMatch(/^[\w-]{43}$/);
      expect(apiKey.isSame(apiKey.digestOf(one), apiKey.digestOf(one))).toBe(true);
      expect(apiKey.isSame(apiKey.digestOf(one), apiKey.digestOf(other))).toBe(one === other);
    }),
  );
});

const sample = apiKey.newKey("4fK2xQ9a");
test.each([
  sample,
  `Bearer ${sample} `,
  `Bearer ${sample}\n`,
  `Bearer ${sample.replace("_", "-")}`,
  `Bearer pck_4fK2xQ9a${sample.slice(13)}`,
  `Basic ${sample}`,
])("the gateway's pattern refuses %j", (header) => {
  const isMatch = [apiKey.KEY_PATTERN, BEARER_PATTERN].some((pattern) => new RegExp(pattern).test(header));
  expect([apiKey.keyIn(header), isMatch]).toEqual([undefined, false]);
});
