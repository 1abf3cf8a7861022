/** Runs the scheduled smoke test, which checks the main features of the deployed service over HTTP, as a client does. */
import { canary } from "#shared/smoke/canary.ts";

export const handler = (): Promise<void> => canary();
