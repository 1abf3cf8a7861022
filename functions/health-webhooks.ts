/**
 * POST /health/webhooks: answers a webhook with its signature and the digest of its body. The smoke test sends its webhook here, and reads
 * the answer in the log of deliveries, so the smoke test needs no receiver of its own.
 */
import { createHash } from "node:crypto";
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import { ApiError } from "#shared/errors.ts";
import { answer, problemAnswer } from "#shared/http/answer.ts";
import { answering } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";

const SIGNATURE = /^[0-9a-f]{64}$/;

const serve = (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> =>
  answering(event, async ({ request: { headers, body }, request }) => {
    if (Buffer.byteLength(body) > limits.bodyBytes) {
      const detail = `The body may hold at most ${limits.bodyBytes} bytes.`;
      return problemAnswer(request, new ApiError("payload_too_large", detail));
    }
    const signature = headers.get("x-service-signature")?.join() ?? "";
    return answer(request, 200, {
      signature: SIGNATURE.test(signature) ? signature : null,
      sha256: createHash("sha256").update(body).digest("hex"),
    });
  });

const hex = { pattern: SIGNATURE.source } as const;

export const handler = Object.assign(serve, {
  document: {
    summary: "Receive a webhook for a test",
    description:
      "Answers any body with the digest of the body and the signature that have arrived. The log of deliveries of a webhook with this URL then shows them. The service checks and stores nothing.",
    mediaType: "application/json",
    name: "WebhookReceipt",
    schema: {
      type: "object",
      description: "The signature and the digest of a webhook that has arrived.",
      properties: {
        signature: {
          type: ["string", "null"],
          ...hex,
          description: "The header `X-Service-Signature`; null if it has another form.",
        },
        sha256: { type: "string", ...hex, description: "SHA-256 of the body." },
      },
      required: ["signature", "sha256"],
    },
  },
});
