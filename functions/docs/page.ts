/** GET /docs: returns the API reference as one page. The page loads no file from another host. */
import { readFileSync } from "node:fs";
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import * as z from "zod/mini";
import { oncePerInstance } from "#shared/instance.ts";

/** The content of page.json. The build writes this file into the function's folder. */
const Page = z.object({ html: z.string(), contentSecurityPolicy: z.string() });
const file = new URL("page.json", import.meta.url);
const page = /* @__PURE__ */ oncePerInstance(() => Page.parse(JSON.parse(readFileSync(file, "utf8"))));

async function serve({ requestContext }: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
  const { html, contentSecurityPolicy } = page();
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
