/** Tests that reads of the company index equal a plain filter over the records, in 5 000 random sequences of writes, flushes and merges. */
import { test } from "vitest";
import { expectIndexLaw } from "./index-law.ts";

test("totals, ids and order equal a plain filter over the records, in 5 000 random sequences", () =>
  expectIndexLaw(5_000));
