// CloudFront runs this function for each request that is not for the API (cloudfront-js-2.0). The console is one page, whose script shows
// the view of the path. Every path without a file extension is therefore answered with this page.
function handler(event) {
  const request = event.request;
  const name = request.uri.slice(request.uri.lastIndexOf("/") + 1);
  if (name.indexOf(".") === -1) request.uri = "/index.html";
  return request;
}
