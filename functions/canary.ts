/** Runs the scheduled smoke test, which checks the main steps of the deployment over HTTP, as a client does. */
import { canary } from "#shared/smoke/canary.ts";

export const handler = canary;
