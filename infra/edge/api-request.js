// CloudFront runs this function for each request to the API (cloudfront-js-2.0). API Gateway's authorizer reads only the Authorization
// header, so this function converts the console's session cookie to this header. It does so only if the request has no Authorization header
// and has the console's header X-Requested-With. Pages of other origins cannot send X-Requested-With. The session endpoints get the two
// cookies of the console, and all other endpoints get no cookie.
// It also sets the header x-viewer-address, by which the web ACL counts the requests of each user's address. The header X-Forwarded-For is
// no use for this: CloudFront keeps the addresses that the user has written into it, and the web ACL reads the first address.
// The runtime supports ES5 with const, let and a few newer features, but no destructuring and no for-of.
const SESSION_COOKIE = "__Host-session";
const SIGN_IN_COOKIE = "__Host-sign-in";

function handler(event) {
  const request = event.request;
  const session = request.cookies[SESSION_COOKIE];
  const signIn = request.cookies[SIGN_IN_COOKIE];
  request.cookies = {};
  request.headers["x-viewer-address"] = { value: event.viewer.ip };
  if (request.uri.indexOf("/api/session/") === 0) {
    // The session endpoints read and set the cookies themselves.
    if (session) request.cookies[SESSION_COOKIE] = session;
    if (signIn) request.cookies[SIGN_IN_COOKIE] = signIn;
    return request;
  }
  if (!request.headers.authorization && isSession(session) && isFromConsole(request.headers["x-requested-with"])) {
    request.headers.authorization = { value: "Session " + session.value };
  }
  return request;
}

// A session cookie or an X-Requested-With that occurs twice is ignored, because one of its two values may come from an attacker.
function isSession(cookie) {
  return cookie !== undefined && !cookie.multiValue && /^[A-Za-z0-9_-]{43}$/.test(cookie.value);
}

function isFromConsole(header) {
  return header !== undefined && !header.multiValue && header.value === "canvassing-console";
}
