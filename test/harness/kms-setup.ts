/** Starts a simulated KMS before the tests of files that call the service's code in their own process. */
import { useTestKms } from "./kms.ts";

await useTestKms();
