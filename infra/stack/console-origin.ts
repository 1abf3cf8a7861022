/**
 * Defines two request headers that the console's CloudFront distribution sets and the web ACL reads. `CONSOLE_PROOF` shows that the request
 * came through the distribution. `VIEWER_ADDRESS` contains the IP address of the user.
 */
import { Fn, type Stack } from "aws-cdk-lib/core";

/** The CloudFront function infra/edge/api-request.js sets this header to the user's IP address, and overwrites a value from the client. */
export const VIEWER_ADDRESS = "x-viewer-address";

/** CloudFront sets this header in each request that it forwards to the API, and overwrites a value from the client. */
export const CONSOLE_PROOF = "x-console-proof";

/**
 * Returns the value of the header `CONSOLE_PROOF`: the UUID in the stack's id, which only people with read access to the account know. A
 * client that knows the UUID can only avoid the web ACL's limit on requests from one address. API Gateway's throttles still apply.
 */
export const consoleProof = ({ stackId }: Stack): string => Fn.select(2, Fn.split("/", stackId));
