/** A competing call before each write of a verb loses nothing. */
import { testLaws } from "./laws.ts";

testLaws("writes");
