/** Starts the test KMS before the test files of a worker. */
import { useTestKms } from "./kms.ts";

await useTestKms();
