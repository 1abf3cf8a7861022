/** Tests that no change is lost if another verb runs just before a write of a verb. The verbs are all except those in company-verbs.ts. */
import { otherLaws, testLaws } from "./laws.ts";

testLaws("writes", otherLaws);
