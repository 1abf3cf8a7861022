/** POST /api/sync/operations: applies the changes that users made on a device that was offline. */
import { endpoint } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { OperationBatch, OperationResults } from "#shared/sync/operations/schema.ts";

export const handler = endpoint(
  {
    summary: "Apply the changes of a device that was offline",
    description: `Each operation is applied once, however often it is sent within ${limits.receiptKeptMs / 86_400_000} days. It uses up its \`opId\` only when it is applied. Send it again after a lost answer, 401, 429, 5xx, and the outcome \`retry\`. A request has at most ${limits.operationsAtOnce} operations and ${limits.bodyBytes} bytes.`,
    allow: "everyone",
    scope: ["prospects:write", "prospects:delete"],
    body: OperationBatch,
    response: OperationResults,
    unknownOutcome: "The request took too long. Send the same operations again.",
  },
  ({ context, caller, requestId, body }) => applyBatch({ context, caller, requestId }, body),
);
