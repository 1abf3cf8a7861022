/**
 * Starts a simulated KMS for a test file, before its tests. It is for test files that call the service's code in their own process, without
 * the local service.
 */
import { useTestKms } from "./kms.ts";

await useTestKms();
