/** A competing call before each write of a verb of prospects, users or webhooks loses nothing. */
import { otherLaws, testLaws } from "./laws.ts";

testLaws("writes", otherLaws);
