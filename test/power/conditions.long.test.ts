/** A competing call between any two table calls of a verb loses nothing. */
import { laws, testLaws } from "./laws.ts";

testLaws("all", laws);
