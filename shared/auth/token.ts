/** Verifies access tokens of the configured OpenID Connect issuer. Keys come from its discovery document and from nowhere a token names. */
import { FetchError, JwtBaseError } from "aws-jwt-verify/error";
import { SimpleJwksCache } from "aws-jwt-verify/jwk";
import type { JwtHeader, JwtPayload } from "aws-jwt-verify/jwt-model";
import { JwtVerifier } from "aws-jwt-verify/jwt-verifier";
import * as z from "zod/mini";
import { setting } from "#shared/config.ts";
import { ApiError } from "#shared/http/problem.ts";

/** A longer token is no token: it costs nothing to refuse it unread. */
const MAX_TOKEN_CHARACTERS = 8_192;
const FETCH_TIMEOUT_MS = 3_000;

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url() });

type Verify = (token: string) => Promise<JwtPayload>;

let verifier: Promise<Verify> | undefined;

/** The subject of a valid access token. Throws `unauthenticated`, or `unavailable` while the issuer's keys cannot be had. */
export async function verifiedSubject(authorization: readonly string[]): Promise<string> {
  const token = bearerToken(authorization);
  verifier ??= createVerifier();
  const verify = await verifier.catch((error: unknown) => {
    verifier = undefined;
    throw new ApiError("unavailable", "The identity provider cannot be reached.", { cause: error });
  });
  try {
    const { sub } = await verify(token);
    if (typeof sub !== "string" || sub === "" || sub.length > 255) throw unauthenticated("The token has no subject.");
    return sub;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (error instanceof FetchError) {
      throw new ApiError("unavailable", "The identity provider cannot be reached.", { cause: error });
    }
    throw unauthenticated("The access token is not valid.", error instanceof JwtBaseError ? error : undefined);
  }
}

export const unauthenticated = (detail: string, cause?: unknown): ApiError =>
  new ApiError("unauthenticated", detail, { headers: { "WWW-Authenticate": "Bearer" }, cause });

function bearerToken(authorization: readonly string[]): string {
  const [header, ...more] = authorization;
  if (header === undefined) throw unauthenticated("The Authorization header is missing.");
  const match = more.length === 0 ? /^Bearer ([A-Za-z0-9._-]+)$/i.exec(header) : null;
  const token = match?.[1];
  if (token === undefined || token.length > MAX_TOKEN_CHARACTERS) {
    throw unauthenticated("The Authorization header must hold one bearer token.");
  }
  return token;
}

async function createVerifier(): Promise<Verify> {
  const issuer = setting("ISSUER");
  const audience = setting("AUDIENCE");
  const discovery = Discovery.parse(
    JSON.parse(new TextDecoder().decode(await fetchBytes(`${issuer}/.well-known/openid-configuration`))),
  );
  if (discovery.issuer !== issuer) throw new Error("the discovery document names another issuer");
  const jwt = JwtVerifier.create(
    {
      issuer,
      // `aud` or `client_id` is checked below: Cognito's access tokens carry only the latter.
      audience: null,
      jwksUri: discovery.jwks_uri,
      customJwtCheck: ({ header, payload }) => assertAccessToken(header, payload, audience),
    },
    { jwksCache: new SimpleJwksCache({ fetcher: { fetch: fetchBytes } }) },
  );
  return (token) => jwt.verify(token);
}

/** An access token says so: Cognito by `token_use`, RFC 9068 by its type. An id token does neither. */
function assertAccessToken(header: JwtHeader, payload: JwtPayload, audience: readonly string[]): void {
  const tokenUse = payload.token_use;
  const type = String(header.typ ?? "").toLowerCase();
  const isAccessToken =
    tokenUse === undefined ? type === "at+jwt" || type === "application/at+jwt" : tokenUse === "access";
  if (!isAccessToken) throw unauthenticated("The token is not an access token.");
  if (typeof payload.exp !== "number") throw unauthenticated("The token does not expire.");
  const aud = payload.aud ?? [];
  const madeOutTo = [payload.client_id, ...(Array.isArray(aud) ? aud : [aud])];
  if (!madeOutTo.some((name) => typeof name === "string" && audience.includes(name))) {
    throw unauthenticated("The token was made out to another application.");
  }
}

/** Plain fetch, so that an issuer on loopback works as one on the internet does. Redirects are not followed. */
async function fetchBytes(url: string): Promise<ArrayBuffer> {
  try {
    const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return await answer.arrayBuffer();
  } catch (error) {
    throw new FetchError(url, error);
  }
}
