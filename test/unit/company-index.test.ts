/** Reads of the company index equal a plain look at the records, in some random sequences of steps; the long run takes more. */
import { test } from "vitest";
import { expectIndexLaw } from "./company-index-law.ts";

test("totals, ids and order equal a plain look at the records, in 400 random sequences", () => expectIndexLaw(400));
