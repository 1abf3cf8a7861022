/** GET /health: shows that the service answers requests. It does not read the table, so it does not show whether the table works. */
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import { answer } from "#shared/http/answer.ts";
import { answering } from "#shared/http/endpoint.ts";

const serve = (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> =>
  answering(event, async ({ request }) => answer(request, 200, { status: "ok" }));

export const handler = Object.assign(serve, {
  document: {
    summary: "Whether the service answers",
    mediaType: "application/json",
    name: "Health",
    schema: {
      type: "object",
      description: "The state of the service.",
      properties: { status: { type: "string", const: "ok" } },
      required: ["status"],
    },
  },
});
