/** Reads of the company index equal a plain look at the records, in as many random sequences as its budget names, and more. */
import { test } from "vitest";
import { expectIndexLaw } from "./index-law.ts";

test("totals, ids and order equal a plain look at the records, in 5 000 random sequences", () => expectIndexLaw(5_000));
