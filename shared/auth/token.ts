/** Verifies access tokens of the configured OpenID Connect issuer. Keys come from the deployment's address of them and from nowhere a token names. */
import { FetchError, JwtBaseError } from "aws-jwt-verify/error";
import { SimpleJwksCache } from "aws-jwt-verify/jwk";
import type { JwtHeader, JwtPayload } from "aws-jwt-verify/jwt-model";
import { JwtVerifier } from "aws-jwt-verify/jwt-verifier";
import * as z from "zod/mini";
import { bearerToken } from "#shared/auth/bearer.ts";
import { setting } from "#shared/config.ts";
import { ApiError } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";

const FETCH_TIMEOUT_MS = 3_000;

const Keys = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });
const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url() });

export interface Issuer {
  readonly issuer: string;
  /** Client ids or audiences that tokens may be made out to. */
  readonly audience: readonly string[];
  /** Where its keys are; undefined asks its discovery document, which is one fetch more. */
  readonly jwksUri: string | undefined;
}

type Verify = (token: string) => Promise<JwtPayload>;

let own: ((authorization: string) => Promise<string>) | undefined;

/** `subjectOf` for the issuer of this deployment. */
export function verifiedSubject(authorization: string): Promise<string> {
  own ??= subjectOf({ issuer: setting("ISSUER"), audience: setting("AUDIENCE"), jwksUri: setting("JWKS_URI") });
  return own(authorization);
}

/**
 * Gives the subject of the access token in an Authorization header. Throws `unauthenticated`, or `unavailable` while the issuer's
 * keys cannot be had. Keys are kept; a key that is not among them makes it look for new ones.
 */
export function subjectOf(issuer: Issuer): (authorization: string) => Promise<string> {
  let verifier: Promise<Verify> | undefined;
  return async (authorization) => {
    const token = bearerToken(authorization);
    if (token === undefined) throw unauthenticated("The Authorization header must hold one bearer token.");
    verifier ??= createVerifier(issuer);
    const verify = await verifier.catch((error: unknown) => {
      verifier = undefined;
      throw unreachable(error);
    });
    try {
      const { sub } = await verify(token);
      if (typeof sub === "string" && sub !== "" && sub.length <= limits.subject) return sub;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      if (error instanceof FetchError) throw unreachable(error);
      throw unauthenticated("The access token is not valid.", error instanceof JwtBaseError ? error : undefined);
    }
    throw unauthenticated("The token has no subject.");
  };
}

const unreachable = (cause: unknown): ApiError =>
  new ApiError("unavailable", "The identity provider cannot be reached.", { cause });

export const unauthenticated = (detail: string, cause?: unknown): ApiError =>
  new ApiError("unauthenticated", detail, { cause });

async function createVerifier({ issuer, audience, jwksUri }: Issuer): Promise<Verify> {
  const jwt = JwtVerifier.create(
    {
      issuer,
      // `aud` or `client_id` is checked below: Cognito's access tokens carry only the latter.
      audience: null,
      jwksUri: jwksUri ?? (await discoveredJwksUri(issuer)),
      customJwtCheck: ({ header, payload }) => assertAccessToken(header, payload, audience),
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

/** What is no set of keys is the issuer's fault: the library would blame the token for it. */
async function fetchKeys(url: string): Promise<ArrayBuffer> {
  const bytes = await fetchBytes(url);
  try {
    Keys.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch (error) {
    throw new FetchError(url, error);
  }
  return bytes;
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
