/** GET /docs: returns the API reference as one page. The page loads no file from another host. */
import { readFileSync } from "node:fs";
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import * as z from "zod/mini";

/** The content of page.json. The build writes this file into the function's folder. */
const Page = z.object({ html: z.string(), contentSecurityPolicy: z.string() });
const page = new URL("page.json", import.meta.url);

let read: z.infer<typeof Page> | undefined;

async function serve({ requestContext }: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
  read ??= Page.parse(JSON.parse(readFileSync(page, "utf8")));
  const { html, contentSecurityPolicy } = read;
  return {
    statusCode: 200,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": contentSecurityPolicy,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cache-Control": "public, max-age=3600",
      "X-Request-Id": requestContext.requestId,
    },
    body: html,
  };
}

export const handler = Object.assign(serve, {
  document: {
    summary: "API reference page",
    mediaType: "text/html",
    name: "HtmlPage",
    schema: { type: "string", description: "A page in HTML." },
  },
});
