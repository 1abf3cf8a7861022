// CloudFront runs this function for each request that is not for the API (cloudfront-js-2.0). The console is a single-page application: the
// script of one page shows the view for the path. So the function changes every path without a file extension to this page.
function handler(event) {
  const request = event.request;
  const name = request.uri.slice(request.uri.lastIndexOf("/") + 1);
  if (name.indexOf(".") === -1) request.uri = "/index.html";
  return request;
}
