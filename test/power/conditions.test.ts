/** Tests that nothing is lost if a competing call runs just before a write of a verb. The verbs are those of companies. */
import { ofCompanies, testLaws } from "./laws.ts";

testLaws("writes", ofCompanies);
