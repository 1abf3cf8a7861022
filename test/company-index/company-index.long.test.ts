/**
 * Tests the company's search index with 5 000 random sequences of writes, flushes and merges. After each sequence, a request must find
 * the same prospects as a plain filter over the records.
 */
import { test } from "vitest";
import { expectIndexLaw } from "./index-law.ts";

test("totals, ids and order equal a plain filter over the records, in 5 000 random sequences", () =>
  expectIndexLaw(5_000));
