/**
 * Two request headers that the console's CloudFront distribution sets and the web ACL reads: the proof that a request came through it, and
 * the user's IP address.
 */
import { Fn, type Stack } from "aws-cdk-lib/core";

/** The CloudFront function infra/edge/api-request.js sets this header to the user's IP address, and overwrites a value from the client. */
export const VIEWER_ADDRESS = "x-viewer-address";

/** The header that proves that a request came through the distribution. CloudFront overwrites a value from the client. */
export const CONSOLE_PROOF = "x-console-proof";

/**
 * The UUID in the stack's id, which only people with read access to the account know. A client that knows this UUID can only avoid the web
 * ACL's limit by address.
 */
export const consoleProof = ({ stackId }: Stack): string => Fn.select(2, Fn.split("/", stackId));
