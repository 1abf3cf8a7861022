/** A competing call before each write of a verb of companies loses nothing. */
import { ofCompanies, testLaws } from "./laws.ts";

testLaws("writes", ofCompanies);
