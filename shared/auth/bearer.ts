/** The form of the Authorization header: the gateway checks it before any function runs, and the authorizer reads the token by it. */

/**
 * RFC 6750, with a JWT as its token: three parts in base64url. The last part is the signature, so an unsigned token does not match.
 * RFC 9110 compares the scheme without case and allows several blanks after it. API Gateway's documentation does not say whether
 * it searches or compares the whole header, so both ends are fixed.
 */
export const BEARER_PATTERN = "^[Bb][Ee][Aa][Rr][Ee][Rr] +[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$";

/** A longer token is refused unread. API Gateway takes 10 240 bytes of headers in all. */
const MAX_TOKEN_CHARACTERS = 8_192;

const bearer = new RegExp(BEARER_PATTERN);

/** Undefined: the header holds no bearer token. */
export function bearerToken(authorization: string): string | undefined {
  const token = authorization.slice(authorization.lastIndexOf(" ") + 1);
  return token.length <= MAX_TOKEN_CHARACTERS && bearer.test(authorization) ? token : undefined;
}
