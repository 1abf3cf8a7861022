/** Tests that nothing is lost if a competing call runs just before a write of a verb, for all verbs but those in company-verbs.ts. */
import { otherLaws, testLaws } from "./laws.ts";

testLaws("writes", otherLaws);
