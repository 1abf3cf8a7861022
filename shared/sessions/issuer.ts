/**
 * Sends the requests to the identity provider (OpenID Connect issuer) for sign-ins of the console: authorization code flow with PKCE, and
 * refresh. Also makes the URLs of its sign-in and sign-out pages.
 */
import {
  AuthorizationResponseError,
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  calculatePKCECodeChallenge,
  discoveryRequest,
  generateRandomCodeVerifier,
  generateRandomNonce,
  generateRandomState,
  getValidatedIdTokenClaims,
  None,
  OperationProcessingError,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processRefreshTokenResponse,
  ResponseBodyError,
  refreshTokenGrantRequest,
  type TokenEndpointResponse,
  validateAuthResponse,
} from "oauth4webapi";
import { subjectOfToken } from "#shared/auth/token.ts";
import { ApiError } from "#shared/errors.ts";

const FETCH_TIMEOUT_MS = 5_000;

/** The console's client at the issuer. */
export interface ConsoleClient {
  readonly issuer: string;
  readonly clientId: string;
  /** Returns the client's secret. Undefined if the client has none: PKCE then proves who began the sign-in. */
  readonly secret?: () => Promise<string>;
  /** The scopes in addition to `openid`, separated by blanks. */
  readonly scope?: string | undefined;
  /** The URL to which the issuer sends the browser back. */
  readonly redirectUri: string;
}

/**
 * The random values of one sign-in: `state` (OAuth), `nonce` (OpenID Connect) and `verifier` (PKCE). With them, the service and the issuer
 * check that the browser and the tokens belong to the sign-in that has begun.
 */
export interface Challenge {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The verified tokens of a user. `accessUntil` is the expiry of the access token, in milliseconds since 1970. */
export interface Tokens {
  readonly sub: string;
  readonly access: string;
  readonly refresh: string | undefined;
  readonly accessUntil: number;
}

/**
 * Thrown if the user must sign in again: the issuer has refused the request, or something that comes from the issuer is not valid. This can
 * be its answer, a token, or the parameters with which it has sent the browser back.
 */
export class SignInRefused extends Error {
  override readonly name = "SignInRefused";
}

export const newChallenge = (): Challenge => ({
  state: generateRandomState(),
  nonce: generateRandomNonce(),
  verifier: generateRandomCodeVerifier(),
});

/** Returns the URL of the issuer's sign-in page. */
export async function signInUrl(client: ConsoleClient, { state, nonce, verifier }: Challenge): Promise<string> {
  const server = await discovered(client.issuer);
  const url = new URL(endpointOf(server.authorization_endpoint));
  const parameters = {
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: client.redirectUri,
    scope: scopeOf(server, client),
    state,
    nonce,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/**
 * Many issuers return a refresh token only for the scope `offline_access`. Cognito does not know this scope and refuses it. It is therefore
 * requested only if the issuer lists it.
 */
function scopeOf({ scopes_supported = [] }: AuthorizationServer, { scope }: ConsoleClient): string {
  const offline = scopes_supported.includes("offline_access") ? ["offline_access"] : [];
  return [...new Set(["openid", ...offline, ...(scope ?? "").split(" ").filter(Boolean)])].join(" ");
}

/**
 * Exchanges the authorization code for tokens. `returned` are the query parameters with which the issuer has sent the browser back. Throws
 * SignInRefused if these parameters, the issuer's answer or the tokens are not valid for this sign-in. Throws `unavailable` if the issuer
 * cannot be reached.
 */
export async function exchangeCode(
  client: ConsoleClient,
  returned: URLSearchParams,
  { state, nonce, verifier }: Challenge,
): Promise<Tokens> {
  const server = await discovered(client.issuer);
  const identified = { client_id: client.clientId };
  return refusing(async () => {
    const parameters = validateAuthResponse(server, identified, returned, state);
    const authentication = await authenticationOf(server, client);
    const { redirectUri, issuer } = client;
    const answer = await reaching(
      authorizationCodeGrantRequest(
        server,
        identified,
        authentication,
        parameters,
        redirectUri,
        verifier,
        options(issuer),
      ),
    );
    const granted = await processAuthorizationCodeResponse(server, identified, answer, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    const tokens = await verified(client, granted);
    if (getValidatedIdTokenClaims(granted)?.sub !== tokens.sub) throw new SignInRefused("the tokens name two subjects");
    return tokens;
  });
}

/**
 * Returns new tokens. Throws SignInRefused if the issuer no longer accepts the refresh token, or `unavailable` if the issuer cannot be
 * reached.
 */
export async function refreshTokens(client: ConsoleClient, refreshToken: string): Promise<Tokens> {
  const server = await discovered(client.issuer);
  const identified = { client_id: client.clientId };
  return refusing(async () => {
    const authentication = await authenticationOf(server, client);
    const answer = await reaching(
      refreshTokenGrantRequest(server, identified, authentication, refreshToken, options(client.issuer)),
    );
    const tokens = await verified(client, await processRefreshTokenResponse(server, identified, answer));
    // An issuer that does not rotate refresh tokens returns no new one. The old one then stays valid.
    return { ...tokens, refresh: tokens.refresh ?? refreshToken };
  });
}

/** Returns the URL of the issuer's sign-out page. Returns undefined if the issuer has none. */
export async function signOutUrl(client: ConsoleClient, returnTo: string): Promise<string | undefined> {
  const { end_session_endpoint: endpoint } = await discovered(client.issuer);
  if (endpoint === undefined) return undefined;
  const url = new URL(endpoint);
  // Cognito expects the parameter `logout_uri` instead of the standard `post_logout_redirect_uri`, so the URL contains both.
  const parameters = { client_id: client.clientId, post_logout_redirect_uri: returnTo, logout_uri: returnTo };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

const EARLIEST_EXPIRY_MS = 60_000;

/**
 * Verifies the access token in the same way as for any other request, but accepts only tokens for the console's client. If the response
 * does not say when the token expires, the token is used for EARLIEST_EXPIRY_MS.
 */
async function verified({ clientId }: ConsoleClient, granted: TokenEndpointResponse): Promise<Tokens> {
  const { access_token: access, refresh_token: refresh, expires_in: seconds } = granted;
  const sub = await subjectOfToken(access, [clientId]);
  const lifetimeMs = seconds === undefined ? EARLIEST_EXPIRY_MS : seconds * 1_000;
  return { sub, access, refresh, accessUntil: Date.now() + lifetimeMs };
}

async function authenticationOf(
  { token_endpoint_auth_methods_supported: methods }: AuthorizationServer,
  { secret }: ConsoleClient,
): Promise<ClientAuth> {
  if (secret === undefined) return None();
  // If the issuer does not list the methods by which a client may authenticate, OpenID Connect Discovery defines `client_secret_basic` as
  // the default.
  const isBasic = (methods ?? ["client_secret_basic"]).includes("client_secret_basic");
  return isBasic ? ClientSecretBasic(await secret()) : ClientSecretPost(await secret());
}

const servers = new Map<string, Promise<AuthorizationServer>>();

/** Returns the issuer's discovery document, which a warm function caches. */
function discovered(issuer: string): Promise<AuthorizationServer> {
  const known = servers.get(issuer);
  if (known !== undefined) return known;
  const url = new URL(issuer);
  const found = reaching(
    discoveryRequest(url, options(issuer)).then((answer) => processDiscoveryResponse(url, answer)),
  );
  servers.set(issuer, found);
  found.catch(() => servers.delete(issuer));
  return found;
}

/**
 * Allows plain http if the issuer's URL begins with `http://`. The settings accept such a URL only for an issuer on this machine, or if
 * `webhookUrlPolicy` is `local`.
 */
const options = (issuer: string) => ({
  [allowInsecureRequests]: issuer.startsWith("http://"),
  signal: () => AbortSignal.timeout(FETCH_TIMEOUT_MS),
});

function endpointOf(url: string | undefined): string {
  if (url === undefined) throw new ApiError("internal", "the issuer has no authorization endpoint");
  return url;
}

async function reaching<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    throw new ApiError("unavailable", "The identity provider cannot be reached.", { cause });
  }
}

/** Converts refusals of the issuer to SignInRefused. The message contains no value of the request. */
async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AuthorizationResponseError) throw new SignInRefused(`the issuer answered ${error.error}`);
    if (error instanceof ResponseBodyError && error.status < 500) {
      throw new SignInRefused(`the token endpoint answered ${error.error}`);
    }
    if (error instanceof OperationProcessingError) throw new SignInRefused(`not valid: ${error.code ?? error.name}`);
    if (error instanceof ApiError && error.code === "unauthenticated") throw new SignInRefused(error.message);
    throw error;
  }
}
