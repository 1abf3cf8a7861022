/** Runs on a schedule. Checks the main steps of the deployment over HTTP, as a client does (smoke test). */
import { canary } from "#shared/smoke/canary.ts";

export const handler = canary;
