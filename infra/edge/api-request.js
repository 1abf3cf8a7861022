// CloudFront runs this function for each request to the API (cloudfront-js-2.0). API Gateway's authorizer reads only the Authorization
// header, so the function converts the cookie of the console's session to this header. It does so only for requests with the header
// X-Requested-With of the console, which pages of other origins cannot send. No other cookie reaches the API.
// The runtime supports ES5 with const, let and a few newer methods, but no destructuring and no for-of.
const SESSION_COOKIE = "__Host-session";
const SIGN_IN_COOKIE = "__Host-sign-in";

function handler(event) {
  const request = event.request;
  const session = request.cookies[SESSION_COOKIE];
  const signIn = request.cookies[SIGN_IN_COOKIE];
  request.cookies = {};
  if (request.uri.indexOf("/api/session/") === 0) {
    // These endpoints read and set the cookies themselves.
    if (session) request.cookies[SESSION_COOKIE] = session;
    if (signIn) request.cookies[SIGN_IN_COOKIE] = signIn;
    return request;
  }
  if (!request.headers.authorization && isSession(session) && isFromConsole(request.headers["x-requested-with"])) {
    request.headers.authorization = { value: "Session " + session.value };
  }
  return request;
}

// A cookie or header that occurs twice is refused, because one of the two may come from an attacker.
function isSession(cookie) {
  return cookie !== undefined && !cookie.multiValue && /^[A-Za-z0-9_-]{43}$/.test(cookie.value);
}

function isFromConsole(header) {
  return header !== undefined && !header.multiValue && header.value === "canvassing-console";
}
