/** Defines the two headers by which the web ACL knows requests through the console's distribution, and the addresses of their users. */
import { Fn, type Stack } from "aws-cdk-lib/core";

/** The function api-request.js sets this header to the address of the user. It replaces a header that the user has sent. */
export const VIEWER_ADDRESS = "x-viewer-address";

/** CloudFront adds this header to each request to the API. It replaces a header that the user has sent. */
export const CONSOLE_PROOF = "x-console-proof";

/**
 * Returns the value of the header `CONSOLE_PROOF`. It is the random part of the stack's id, which only people with read access to the
 * account know. Somebody who knows it can only avoid the rule for floods; the throttles of companies still count.
 */
export const consoleProof = ({ stackId }: Stack): string => Fn.select(2, Fn.split("/", stackId));
