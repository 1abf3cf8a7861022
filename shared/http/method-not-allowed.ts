/** Answers 405 with an `Allow` header. A mock integration of API Gateway answers only media types for which it has a template. */
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import { ApiError } from "#shared/errors.ts";
import { allowsOrigins, problemAnswer } from "#shared/http/answer.ts";
import { answering } from "#shared/http/chain.ts";

export const refusingMethods =
  (methodsOf: (path: string) => readonly string[]) =>
  (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> =>
    answering(event, async ({ request }) => {
      const allowed = [...methodsOf(request.resource), ...(allowsOrigins() ? ["OPTIONS"] : [])];
      const error = new ApiError(
        "method_not_allowed",
        `${request.method} is not available here. The methods of this path are ${allowed.join(", ")}.`,
        { headers: { Allow: allowed.join(", ") } },
      );
      return problemAnswer(request, error);
    });
