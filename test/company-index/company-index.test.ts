/**
 * Tests the company's search index with random sequences of writes, flushes and merges. After each sequence, a request must find the same
 * prospects as a plain filter over the records.
 */
import { test } from "vitest";
import { sized } from "../harness/tier.ts";
import { expectIndexLaw } from "./index-law.ts";

const SEQUENCES = sized({ short: 40, wide: 5_000 });

test(
  `totals, ids and order equal a plain filter over the records, in ${SEQUENCES} random sequences`,
  { tags: "sized" },
  () => expectIndexLaw(SEQUENCES),
);
