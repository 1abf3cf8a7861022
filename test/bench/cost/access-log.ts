/** Computes the size of the lines in the access log. */
import { accessLogFormat } from "../../../infra/stack/api.ts";

/** A line as API Gateway writes it, with `-` for a variable without a value. The cost benchmark counts its bytes. */
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
