/** Defines the format of API Gateway's access log, and writes an example of a log line. */

/**
 * The fields of the access log. The log must contain no personal data. So it contains the pattern of the path (without ids) and the ids of
 * the company and the user, but no query, no header and no address of the caller. CloudWatch adds the time.
 */
const fields = {
  requestId: "$context.requestId",
  method: "$context.httpMethod",
  resource: "$context.resourcePath",
  status: "$context.status",
  latencyMs: "$context.responseLatency",
  functionMs: "$context.integrationLatency",
  bytes: "$context.responseLength",
  gatewayError: "$context.error.responseType",
  // The request id in the log lines of the authorizer function, which differs from `requestId`. This field shows which of these lines
  // belong to the API request.
  authorizationId: "$context.authorizer.requestId",
  companyId: "$context.authorizer.companyId",
  userId: "$context.authorizer.userId",
} as const;

export const accessLogFormat = JSON.stringify(fields);

/**
 * Returns a line as API Gateway writes it for a request. The cost benchmark counts the bytes of such lines. API Gateway writes `-` for a
 * variable without a value.
 */
export function accessLogLine({
  method,
  resource,
  bytes,
}: {
  method: string;
  resource: string;
  bytes: number;
}): string {
  const values: Record<string, string> = {
    "$context.requestId": "6f5a1c8e-8c5c-4d1c-9d7b-2f1f3d1b8a55",
    "$context.httpMethod": method,
    "$context.resourcePath": resource,
    "$context.status": "200",
    "$context.responseLatency": "24",
    "$context.integrationLatency": "21",
    "$context.responseLength": String(bytes),
    "$context.error.responseType": "-",
    "$context.authorizer.requestId": "0b0b9a53-1f5d-4f0e-8a53-5b8f3f0f2c11",
    "$context.authorizer.companyId": "123456",
    "$context.authorizer.userId": "1234567",
  };
  return accessLogFormat.replaceAll(/\$[\w.]+/g, (name) => values[name] ?? "-");
}
