// CloudFront runs this function for each request that is not for the API (cloudfront-js-2.0). The console is a single-page application: the
// script of one page shows the view for the path. So the function changes every path without a file extension to this page.
// A path such as /api, /API/prospects or /health/ is probably a mistyped path of the API. With the page, its client would take the status
// 200 for a success. So the response to such a path is the error that the API sends for an unknown path.
const MISTYPED = /^\/+(?:api|docs|health|openapi[^/]*)(?:\/|$)/i;

function handler(event) {
  const request = event.request;
  if (MISTYPED.test(request.uri)) return noRoute(event.context.requestId);
  const name = request.uri.slice(request.uri.lastIndexOf("/") + 1);
  if (name.indexOf(".") === -1) request.uri = "/index.html";
  return request;
}

function noRoute(id) {
  const problem = {
    type: "urn:problem:not_found",
    title: "There is no such resource",
    status: 404,
    detail: "No route of the API has this path. Its paths begin with /api/, in lower case.",
    code: "not_found",
    requestId: id,
    errors: [],
  };
  return {
    statusCode: 404,
    statusDescription: "Not Found",
    headers: {
      "content-type": { value: "application/problem+json" },
      "cache-control": { value: "no-store" },
      "x-content-type-options": { value: "nosniff" },
      "x-request-id": { value: id },
    },
    body: { encoding: "text", data: JSON.stringify(problem) },
  };
}
