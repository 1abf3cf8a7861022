/** Makes the handler that returns an OpenAPI document with the deployment's address and webhook URL policy. */
import { readFileSync } from "node:fs";
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import * as z from "zod/mini";
import { setting } from "#shared/config.ts";
import { readRequest } from "#shared/http/request.ts";

const Document = z.looseObject({ info: z.looseObject({}) });

/** @param file the document, which the build puts next to the function */
export function openApiDocument(file: URL): (event: APIGatewayProxyEvent) => Promise<APIGatewayProxyResult> {
  // The text is cached, because parsing and serializing the document takes a hundred times as long as returning the text.
  let text: { readonly prefix: string; readonly body: string } | undefined;
  return async (event) => {
    const { prefix, requestId } = readRequest(event);
    if (text?.prefix !== prefix) {
      const { info, ...rest } = Document.parse(JSON.parse(readFileSync(file, "utf8")));
      const body = {
        ...rest,
        info: { ...info, "x-webhook-url-policy": setting("WEBHOOK_URL_POLICY") },
        // The prefix is the stage on API Gateway's own host name, and empty on a custom domain.
        servers: [{ url: prefix || "/" }],
      };
      text = { prefix, body: JSON.stringify(body) };
    }
    return {
      statusCode: 200,
      headers: { "Content-Type": "application/json", "Cache-Control": "no-cache", "X-Request-Id": requestId },
      body: text.body,
    };
  };
}

/** The contract of a route that returns an OpenAPI document. */
export const documentAnswer = {
  mediaType: "application/json",
  name: "OpenApiDocument",
  schema: { type: "object", description: "An OpenAPI document.", additionalProperties: true },
} as const;
