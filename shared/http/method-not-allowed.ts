/** 405 with `Allow`. A mock of API Gateway cannot give it for every request: it picks its template by the media type, and has none for most. */
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import { ApiError } from "#shared/errors.ts";
import { allowsOrigins, problemAnswer } from "#shared/http/answer.ts";
import { answering } from "#shared/http/chain.ts";

/** @param methodsOf the methods of a resource path. Where browsers may call at all, OPTIONS is one of them, and the gateway answers it. */
export const refusingMethods =
  (methodsOf: (path: string) => readonly string[]) =>
  (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> =>
    answering(event, async ({ request }) => {
      const allowed = [...methodsOf(request.resource), ...(allowsOrigins() ? ["OPTIONS"] : [])];
      const error = new ApiError("method_not_allowed", "This method is not available here; see Allow.", {
        headers: { Allow: allowed.join(", ") },
      });
      return problemAnswer(request, error);
    });
