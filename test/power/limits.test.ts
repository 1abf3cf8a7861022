/** Tests each constant of limits.ts at its value and one beyond. A new constant without an entry fails the last test. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as limits from "#shared/limits.ts";
import { closeAfterEach } from "../harness/listening.ts";
import { cases } from "./limit-cases.ts";
import { files } from "./limit-cases-files.ts";
import { sessions } from "./limit-cases-sessions.ts";
import { within } from "./limit-cases-within.ts";
import { type Case, startTable } from "./limit-stage.ts";
import { others } from "./limits-elsewhere.ts";

startTable();
closeAfterEach();

describe("each limit at its value and one beyond", () => {
  process.env.WEBHOOK_URL_POLICY = "local";
  for (const [name, limit] of Object.entries<Case>({ ...cases, ...files, ...sessions, ...within })) {
    const value = Object.entries(limits).find(([other]) => other === name)?.[1] ?? Number.NaN;
    if ("most" in limit) {
      test(`${name}: ${value} is accepted, one more is refused`, async () => {
        expect([await limit.most(value), await limit.most(value + 1)]).toEqual([true, false]);
      });
    } else if ("least" in limit) {
      test(`${name}: ${value} is accepted, one less is refused`, async () => {
        expect([await limit.least(value), await limit.least(value - 1)]).toEqual([true, false]);
      });
    } else if ("is" in limit) test(`${name} is ${value}`, () => limit.is(value));
  }
});

test("a limit without an entry here has a test in the named file", () => {
  for (const [name, file] of Object.entries(others)) {
    const code = readFileSync(join(import.meta.dirname, "../..", file), "utf8");
    expect(code.includes(`limits.${name}`), `${file} names limits.${name}`).toBe(true);
  }
  expect(Object.keys({ ...cases, ...files, ...sessions, ...within, ...others }).toSorted()).toEqual(
    Object.keys(limits).toSorted(),
  );
});
