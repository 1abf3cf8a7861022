/** Tests that no change is lost if another verb runs just before a write of a verb. The verbs are those in company-verbs.ts. */
import { ofCompanies, testLaws } from "./laws.ts";

testLaws("writes", ofCompanies);
