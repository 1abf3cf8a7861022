/** The requests to the identity provider for sign-ins of the console: authorization code flow with PKCE, and refresh. */
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

export interface ConsoleClient {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined if the client has no secret. PKCE alone then proves who began the sign-in. */
  readonly secret?: () => Promise<string>;
  /** The scopes in addition to `openid`, separated by blanks. */
  readonly scope?: string | undefined;
  readonly redirectUri: string;
}

/** The random values of OAuth, OpenID Connect and PKCE. They show that the browser and the tokens belong to one sign-in. */
interface Challenge {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Verified tokens. `accessUntil` is the expiry of the access token, in milliseconds since 1970. */
export interface Tokens {
  readonly sub: string;
  readonly access: string;
  readonly refresh: string | undefined;
  readonly accessUntil: number;
}

/** The user must sign in again: the issuer has refused the request, or its redirect, its response or a token is not valid. */
export class SignInRefused extends Error {
  override readonly name = "SignInRefused";
}

export const newChallenge = (): Challenge => ({
  state: generateRandomState(),
  nonce: generateRandomNonce(),
  verifier: generateRandomCodeVerifier(),
});

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

/** Many issuers return a refresh token only for the scope `offline_access`, but Cognito refuses this scope. */
function scopeOf({ scopes_supported = [] }: AuthorizationServer, { scope }: ConsoleClient): string {
  const offline = scopes_supported.includes("offline_access") ? ["offline_access"] : [];
  return [...new Set(["openid", ...offline, ...(scope ?? "").split(" ").filter(Boolean)])].join(" ");
}

/** `returned` has the query parameters of the issuer's redirect. Throws SignInRefused if they, the response or the tokens are not valid. */
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
      ).then(answered),
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

/** Throws SignInRefused if the issuer no longer accepts the refresh token, or `unavailable` if it cannot be reached. */
export async function refreshTokens(client: ConsoleClient, refreshToken: string): Promise<Tokens> {
  const server = await discovered(client.issuer);
  const identified = { client_id: client.clientId };
  return refusing(async () => {
    const authentication = await authenticationOf(server, client);
    const answer = await reaching(
      refreshTokenGrantRequest(server, identified, authentication, refreshToken, options(client.issuer)).then(answered),
    );
    const tokens = await verified(client, await processRefreshTokenResponse(server, identified, answer));
    // Without rotation, the old refresh token stays valid.
    return { ...tokens, refresh: tokens.refresh ?? refreshToken };
  });
}

/** Returns the URL of the issuer's sign-out page. Undefined if the issuer has none. */
export async function signOutUrl(client: ConsoleClient, returnTo: string): Promise<string | undefined> {
  const { end_session_endpoint: endpoint } = await discovered(client.issuer);
  if (endpoint === undefined) return undefined;
  const url = new URL(endpoint);
  // Cognito expects `logout_uri` instead of the standard parameter.
  const parameters = { client_id: client.clientId, post_logout_redirect_uri: returnTo, logout_uri: returnTo };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

const EARLIEST_EXPIRY_MS = 60_000;

/** Verifies the issuer's tokens, which must be for the console's client. A token without an expiry is used for EARLIEST_EXPIRY_MS. */
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
  // If the discovery document names no method, the issuer supports `client_secret_basic` (OpenID Connect Discovery, section 3).
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

/** The settings accept plain http only for an issuer on this machine, or if `webhookUrlPolicy` is `local`. */
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

/** Throws if the response shows a fault or a rate limit of the issuer. This is no refusal of the user, so the session must not end. */
function answered(answer: Response): Response {
  if (answer.status < 500 && answer.status !== 429) return answer;
  throw new Error(`the token endpoint answered ${answer.status}`);
}

/** Converts the library's errors about a refusal to SignInRefused. The message contains no value of the request, because it is logged. */
async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AuthorizationResponseError) throw new SignInRefused(`the issuer answered ${error.error}`);
    if (error instanceof ResponseBodyError) throw new SignInRefused(`the token endpoint answered ${error.error}`);
    if (error instanceof OperationProcessingError) throw new SignInRefused(`not valid: ${error.code ?? error.name}`);
    if (error instanceof ApiError && error.code === "unauthenticated") throw new SignInRefused(error.message);
    throw error;
  }
}
