/** Verifies access tokens of the configured OpenID Connect issuer. Signing keys are never fetched from an address in a token. */
import {
  FetchError,
  JwtBaseError,
  JwtExpiredError,
  JwtInvalidIssuerError,
  JwtNotBeforeError,
  JwtParseError,
  WaitPeriodNotYetEndedJwkError,
} from "aws-jwt-verify/error";
import { SimpleJwksCache } from "aws-jwt-verify/jwk";
import type { JwtHeader, JwtPayload } from "aws-jwt-verify/jwt-model";
import { JwtVerifier } from "aws-jwt-verify/jwt-verifier";
import * as z from "zod/mini";
import { setting } from "#shared/config.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";

const FETCH_TIMEOUT_MS = 2_000;

/**
 * Matches a bearer header (RFC 6750) with a signed JWT. RFC 9110 allows any case of `Bearer`, and several spaces. API Gateway checks this
 * pattern. It does not document whether a pattern must match the whole header, so the pattern has `^` and `$`.
 */
export const BEARER_PATTERN = "^[Bb][Ee][Aa][Rr][Ee][Rr] +[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$";

/** Tolerated difference between the clocks of the token issuer and of the service. */
const LEEWAY_SECONDS = 60;

/** The reason of a 401, in the header `WWW-Authenticate` (RFC 6750). API Gateway caches the reason, so it depends on the token alone. */
export type Refusal =
  | "expired"
  | "not yet valid"
  | "malformed"
  | "signature not verified"
  | "wrong issuer"
  | "wrong audience"
  | "not an access token"
  | "unknown, expired or revoked key";

export class TokenRefused extends ApiError {
  readonly reason: Refusal;
  constructor(reason: Refusal, detail: string, cause?: unknown) {
    super("unauthenticated", detail, { cause });
    this.name = "TokenRefused";
    this.reason = reason;
  }
}

const bearer = new RegExp(BEARER_PATTERN);

export function bearerToken(authorization: string): string | undefined {
  const token = authorization.slice(authorization.lastIndexOf(" ") + 1);
  return token.length <= limits.accessToken && bearer.test(authorization) ? token : undefined;
}

const Keys = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });
const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url() });

interface Issuer {
  readonly issuer: string;
  /** If undefined, the URL is read from the issuer's discovery document. */
  readonly jwksUri: string | undefined;
}

type Verify = (token: string) => Promise<JwtPayload>;

let own: SubjectOfToken | undefined;

/** Verifies a token, which must be for a client id or audience in `audience`. Returns the subject of the token. */
export function subjectOfToken(token: string, audience: readonly string[]): Promise<string> {
  own ??= tokenSubjects({ issuer: setting("ISSUER"), jwksUri: setting("JWKS_URI") });
  return own(token, audience);
}

export async function verifiedSubject(authorization: string): Promise<string> {
  const token = bearerToken(authorization);
  if (token === undefined) throw new TokenRefused("malformed", "The Authorization header must hold one bearer token.");
  return subjectOfToken(token, setting("AUDIENCE"));
}

type SubjectOfToken = (token: string, audience: readonly string[]) => Promise<string>;

/** The returned function throws `unauthenticated` for an invalid token, and `unavailable` if the issuer's keys cannot be fetched. */
export function tokenSubjects(issuer: Issuer): SubjectOfToken {
  let verifier: Promise<Verify> | undefined;
  return async (token, audience) => {
    verifier ??= createVerifier(issuer);
    const verify = await verifier.catch((error: unknown) => {
      verifier = undefined;
      throw unreachable(error);
    });
    try {
      const payload = await verify(token);
      assertAudience(payload, audience);
      const { sub } = payload;
      if (typeof sub === "string" && sub !== "" && sub.length <= limits.subject) return sub;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      if (error instanceof FetchError) throw unreachable(error);
      throw refused(error);
    }
    throw new TokenRefused("malformed", "The token has no subject.");
  };
}

function refused(error: unknown): ApiError {
  const cause = error instanceof JwtBaseError ? error : undefined;
  const detail = "The access token is not valid.";
  // The library does not know the token's signing key yet, but may get it when it fetches the keys again some seconds later. API Gateway
  // would cache a TokenRefused for longer than that, so this refusal is another error.
  if (error instanceof WaitPeriodNotYetEndedJwkError) return unauthenticated(detail, cause);
  return new TokenRefused(refusalOf(error), detail, cause);
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof JwtExpiredError) return "expired";
  if (error instanceof JwtNotBeforeError) return "not yet valid";
  if (error instanceof JwtInvalidIssuerError) return "wrong issuer";
  return error instanceof JwtParseError ? "malformed" : "signature not verified";
}

const unreachable = (cause: unknown): ApiError =>
  new ApiError("unavailable", "The identity provider cannot be reached.", { cause });

export const unauthenticated = (detail: string, cause?: unknown): ApiError =>
  new ApiError("unauthenticated", detail, { cause });

async function createVerifier({ issuer, jwksUri }: Issuer): Promise<Verify> {
  const jwt = JwtVerifier.create(
    {
      issuer,
      // Cognito's access tokens have only `client_id`, so `assertAudience` replaces the library's check of `aud`.
      audience: null,
      graceSeconds: LEEWAY_SECONDS,
      jwksUri: jwksUri ?? (await discoveredJwksUri(issuer)),
      customJwtCheck: ({ header, payload }) => assertAccessToken(header, payload),
    },
    { jwksCache: new SimpleJwksCache({ fetcher: { fetch: fetchKeys } }) },
  );
  return (token) => jwt.verify(token);
}

async function discoveredJwksUri(issuer: string): Promise<string> {
  const bytes = await fetchBytes(`${issuer}/.well-known/openid-configuration`);
  const discovery = Discovery.parse(JSON.parse(new TextDecoder().decode(bytes)));
  if (discovery.issuer !== issuer) throw new Error("the discovery document names another issuer");
  return discovery.jwks_uri;
}

/** An access token has the `token_use` `access` (Cognito), or no `token_use` and the `typ` `at+jwt` (RFC 9068). */
function assertAccessToken(header: JwtHeader, payload: JwtPayload): void {
  const tokenUse = payload.token_use;
  const type = String(header.typ).toLowerCase();
  const isAccessToken =
    tokenUse === undefined ? type === "at+jwt" || type === "application/at+jwt" : tokenUse === "access";
  if (!isAccessToken) throw new TokenRefused("not an access token", "The token is not an access token.");
  if (typeof payload.exp !== "number") throw new TokenRefused("malformed", "The token does not expire.");
  if (payload.iat !== undefined && payload.iat - LEEWAY_SECONDS > Date.now() / 1_000) {
    throw new TokenRefused("not yet valid", "The token was issued in the future.");
  }
}

function assertAudience(payload: JwtPayload, audience: readonly string[]): void {
  const aud = payload.aud ?? [];
  const madeOutTo = [payload.client_id, ...(Array.isArray(aud) ? aud : [aud])];
  if (!madeOutTo.some((name) => typeof name === "string" && audience.includes(name))) {
    throw new TokenRefused("wrong audience", "The token was made out to another application.");
  }
}

/** Fetches the issuer's keys and checks their form. Otherwise, the library would report malformed keys as an invalid token. */
async function fetchKeys(url: string): Promise<ArrayBuffer> {
  const bytes = await fetchBytes(url);
  try {
    Keys.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch (error) {
    throw new FetchError(url, error);
  }
  return bytes;
}

/**
 * Replaces the library's function for requests, which would refuse a local issuer without TLS. A failed request is sent once more, because
 * the issuer may have closed a connection while Lambda had paused the function.
 */
async function fetchBytes(url: string): Promise<ArrayBuffer> {
  const read = async (): Promise<ArrayBuffer> => {
    const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return await answer.arrayBuffer();
  };
  try {
    return await read().catch(read);
  } catch (error) {
    throw new FetchError(url, error);
  }
}
