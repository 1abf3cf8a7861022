/**
 * Lets users sign in to the console at the local issuer. A page shows a button for each demo user, and a field for the e-mail address of
 * any other user. Nobody needs a password. The package oauth2-mock-server makes the codes, checks PKCE and signs the tokens.
 */
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { LRUCache } from "lru-cache";
import {
  Events,
  type MutableRedirectUri,
  type MutableResponse,
  type MutableToken,
  type TokenRequestIncomingMessage,
} from "oauth2-mock-server";
import * as z from "zod/mini";
import type { Identity } from "./identity.ts";

export const CONSOLE_CLIENT = "local-console";

/** Responds to a request for the path `/authorize` or `/token` of the issuer. */
export type SignIn = (path: string, request: IncomingMessage, response: ServerResponse) => Promise<void>;

interface SignInOptions {
  readonly identity: Pick<Identity, "service">;
  /** The only redirect URL that a sign-in may use. */
  readonly redirectUri: string;
  /** The role of each user who has a button, by the user's e-mail address. */
  readonly roles: ReadonlyMap<string, string>;
  readonly subjectOf: (email: string) => Promise<string | undefined>;
}

const ACCESS_SECONDS = 3_600;
/** Maximum number of codes and refresh tokens in memory. At this number, a new one replaces the one whose last use is the oldest. */
const KEPT = 1_000;

/** The user to whom a code or a refresh token belongs, and the life of the access tokens that it gives. */
interface Grant {
  readonly sub: string;
  readonly accessSeconds: number;
}

const Authorization = z.object({
  response_type: z.literal("code"),
  client_id: z.literal(CONSOLE_CLIENT),
  redirect_uri: z.string(),
  state: z.string(),
  code_challenge: z.string().check(z.regex(/^[A-Za-z0-9_-]{43}$/)),
  code_challenge_method: z.literal("S256"),
});

/** The fields of the sign-in page's form. Tests send `expires_in` to get access tokens with a shorter life. */
const Chosen = z.object({
  email: z.string().check(z.minLength(1)),
  expires_in: z._default(z.coerce.number().check(z.int(), z.minimum(1)), ACCESS_SECONDS),
});

const TokenRequest = z.union([
  // `code_verifier` is required here, because the package checks PKCE only if a request has one.
  z.object({ grant_type: z.literal("authorization_code"), code: z.string(), code_verifier: z.string() }),
  z.object({ grant_type: z.literal("refresh_token"), refresh_token: z.string() }),
]);

export function createSignIn({ identity: { service }, redirectUri, roles, subjectOf }: SignInOptions): SignIn {
  const chosen = new WeakMap<IncomingMessage, Grant>();
  addGrants(service, chosen);
  return async (path, request, response) => {
    const { pathname, searchParams } = new URL(path, "http://issuer.invalid");
    request.url = path;
    if (pathname !== "/authorize") return service.requestHandler(request, response);
    const asked = z.safeParse(Authorization, Object.fromEntries(searchParams));
    if (!asked.success || asked.data.redirect_uri !== redirectUri) {
      return page(response, 400, "<p>This is no request of the console for a sign-in.</p>");
    }
    if (request.method !== "POST") return page(response, 200, buttons(roles));
    const form = Object.fromEntries(new URLSearchParams(await text(request)));
    const { email, expires_in: accessSeconds } = z.parse(Chosen, form);
    const sub = await subjectOf(email);
    if (sub === undefined) return page(response, 404, `<p>No user has this e-mail address.</p>${buttons(roles)}`);
    chosen.set(request, { sub, accessSeconds });
    request.method = "GET";
    response.setHeader("Cache-Control", "no-store");
    service.requestHandler(request, response);
  };
}

/** Stores the user of each code and refresh token that oauth2-mock-server makes. A code or refresh token is valid once. */
function addGrants(service: Identity["service"], chosen: WeakMap<IncomingMessage, Grant>): void {
  const grants = new LRUCache<string, Grant>({ max: KEPT });
  const nameIn = ({ body }: TokenRequestIncomingMessage): string => {
    const asked = z.safeParse(TokenRequest, body);
    if (!asked.success) return "";
    return "code" in asked.data ? asked.data.code : asked.data.refresh_token;
  };
  service.on(Events.BeforeAuthorizeRedirect, ({ url }: MutableRedirectUri, request: IncomingMessage) => {
    const grant = chosen.get(request);
    if (grant !== undefined) grants.set(String(url.searchParams.get("code")), grant);
  });
  service.on(Events.BeforeTokenSigning, ({ payload }: MutableToken, request: TokenRequestIncomingMessage) => {
    const { sub, accessSeconds } = grants.get(nameIn(request)) ?? {};
    // Only an ID token has an audience. An access token gets the claims of Cognito's access tokens.
    const own = "aud" in payload ? { token_use: "id" } : accessClaims(payload.iat + (accessSeconds ?? 0));
    Object.assign(payload, { sub, ...own });
  });
  service.on(Events.BeforeResponse, (response: MutableResponse, request: TokenRequestIncomingMessage) => {
    const name = nameIn(request);
    const grant = grants.get(name);
    grants.delete(name);
    if (grant === undefined || response.body === "") {
      Object.assign(response, { statusCode: 400, body: { error: "invalid_grant" } });
      return;
    }
    Object.assign(response.body, { expires_in: grant.accessSeconds });
    grants.set(String(response.body.refresh_token), { sub: grant.sub, accessSeconds: ACCESS_SECONDS });
  });
}

const accessClaims = (exp: number): object => ({
  client_id: CONSOLE_CLIENT,
  token_use: "access",
  jti: randomUUID(),
  exp,
});

const PAGE = readFileSync(new URL("sign-in.html", import.meta.url), "utf8");
const STYLE_HASH = createHash("sha256")
  .update(PAGE.replace(/^.*<style>|<\/style>.*$/gs, ""))
  .digest("base64");

const buttons = (roles: ReadonlyMap<string, string>): string => `<form method="post">
${[...roles].map(([email, role]) => `<button name="email" value="${email}">${email} <small>${role}</small></button>`).join("\n")}
</form>
<form method="post"><label>Another user <input name="email" type="email" required></label><button>Sign in</button></form>`;

function page(response: ServerResponse, status: number, content: string): void {
  response
    .writeHead(status, {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
    })
    .end(PAGE.replace("CONTENT", () => content));
}
