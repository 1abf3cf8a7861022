/** GET /openapi.json: returns the OpenAPI document with the address and the settings of this deployment. */
import { readFileSync } from "node:fs";
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import * as z from "zod/mini";
import { setting } from "#shared/config.ts";

const Document = z.looseObject({ info: z.looseObject({}) });

const document = new URL("openapi.json", import.meta.url);

async function serve(event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
  const { requestId, path } = event.requestContext;
  const { info, ...rest } = Document.parse(JSON.parse(readFileSync(document, "utf8")));
  const body = {
    ...rest,
    info: { ...info, "x-webhook-url-policy": setting("WEBHOOK_URL_POLICY") },
    // The path starts with the stage, such as `/prod`, on API Gateway's own host name. It has no stage on a custom domain.
    servers: [{ url: path.slice(0, -event.resource.length) || "/" }],
  };
  return {
    statusCode: 200,
    headers: { "Content-Type": "application/json", "Cache-Control": "no-cache", "X-Request-Id": requestId },
    body: JSON.stringify(body),
  };
}

export const handler = Object.assign(serve, {
  document: {
    summary: "This document",
    tag: "Documentation",
    mediaType: "application/json",
    schema: { type: "object" },
  },
});
