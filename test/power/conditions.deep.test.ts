/**
 * Tests that nothing is lost if a competing call runs just before a write of a verb. The verbs are those of prospects, users, API keys and
 * webhooks.
 */
import { otherLaws, testLaws } from "./laws.ts";

testLaws("writes", otherLaws);
