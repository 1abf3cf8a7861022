/** Tests that no change is lost if another verb runs just before any call of a verb to the table, for all verbs. */
import { laws, testLaws } from "./laws.ts";

testLaws("all", laws);
