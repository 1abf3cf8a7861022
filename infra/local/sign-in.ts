/**
 * Serves the sign-in page and the token endpoint of the local issuer, for the console. The page shows a button for each demo user, and a
 * field for the e-mail address of any other user. Codes, PKCE and refresh tokens are checked as strictly as by a real issuer, but nobody
 * needs a password.
 */
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import type { Identity } from "./identity.ts";

/** The client id of the console at the local issuer. */
export const CONSOLE_CLIENT = "local-console";

/** Responds to a request for the path `/authorize` or `/token` of the issuer. */
export type SignIn = (path: string, request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface SignInOptions {
  readonly identity: Pick<Identity, "mint">;
  /** The only redirect URL that a sign-in may use. */
  readonly redirectUri: string;
  readonly users: readonly string[];
  /** Returns the token subject of the user with this e-mail address. */
  readonly subjectOf: (email: string) => Promise<string | undefined>;
}

const CODE_MS = 60_000;
const ACCESS_SECONDS = 3_600;
/**
 * Maximum number of authorization codes in memory, and also of refresh tokens. At this number, a new code or token replaces the oldest one.
 */
const KEPT = 1_000;

interface Grant {
  readonly sub: string;
  readonly accessSeconds: number;
}

interface Code extends Grant {
  readonly challenge: string;
  readonly nonce: string | undefined;
  readonly until: number;
}

const Authorization = z.object({
  response_type: z.literal("code"),
  client_id: z.literal(CONSOLE_CLIENT),
  redirect_uri: z.string(),
  state: z.string(),
  nonce: z.optional(z.string()),
  code_challenge: z.string().check(z.regex(/^[A-Za-z0-9_-]{43}$/)),
  code_challenge_method: z.literal("S256"),
});

/** The fields of the sign-in page's form. Tests send `expires_in` to get access tokens with a shorter life. */
const Chosen = z.object({
  email: z.string().check(z.minLength(1)),
  expires_in: z._default(z.coerce.number().check(z.int(), z.minimum(1)), ACCESS_SECONDS),
});

const TokenRequest = z.discriminatedUnion("grant_type", [
  z.object({
    grant_type: z.literal("authorization_code"),
    client_id: z.literal(CONSOLE_CLIENT),
    code: z.string(),
    redirect_uri: z.string(),
    code_verifier: z.string(),
  }),
  z.object({
    grant_type: z.literal("refresh_token"),
    client_id: z.literal(CONSOLE_CLIENT),
    refresh_token: z.string(),
  }),
]);

export function createSignIn(options: SignInOptions): SignIn {
  const codes = new Map<string, Code>();
  const refreshTokens = new Map<string, Grant>();
  return async (path, request, response) => {
    const { pathname, searchParams } = new URL(path, "http://issuer.invalid");
    if (pathname === "/authorize") await authorize(options, codes, searchParams, request, response);
    else await grant(options, { codes, refreshTokens }, request, response);
  };
}

async function authorize(
  { redirectUri, users, subjectOf }: SignInOptions,
  codes: Map<string, Code>,
  parameters: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const asked = z.safeParse(Authorization, Object.fromEntries(parameters));
  if (!asked.success || asked.data.redirect_uri !== redirectUri) {
    return page(response, 400, "<p>This is no request of the console for a sign-in.</p>");
  }
  if (request.method !== "POST") return page(response, 200, buttons(users));
  const { email, expires_in: accessSeconds } = z.parse(
    Chosen,
    Object.fromEntries(new URLSearchParams(await text(request))),
  );
  const sub = await subjectOf(email);
  if (sub === undefined) return page(response, 404, `<p>No user has this e-mail address.</p>${buttons(users)}`);
  const { state, nonce, code_challenge: challenge } = asked.data;
  const code = keep(codes, { sub, accessSeconds, challenge, nonce, until: Date.now() + CODE_MS });
  const target = new URL(redirectUri);
  target.searchParams.set("code", code);
  target.searchParams.set("state", state);
  response.writeHead(302, { Location: target.href, "Cache-Control": "no-store" }).end();
}

interface Grants {
  readonly codes: Map<string, Code>;
  readonly refreshTokens: Map<string, Grant>;
}

async function grant(
  { identity, redirectUri }: SignInOptions,
  { codes, refreshTokens }: Grants,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const asked = z.safeParse(TokenRequest, Object.fromEntries(new URLSearchParams(await text(request))));
  if (!asked.success) return json(response, 400, { error: "invalid_request" });
  const granted =
    asked.data.grant_type === "refresh_token"
      ? take(refreshTokens, asked.data.refresh_token)
      : redeemed(take(codes, asked.data.code), asked.data, redirectUri);
  if (granted === undefined) return json(response, 400, { error: "invalid_grant" });
  const { sub, accessSeconds } = granted;
  const nonce = "nonce" in granted ? granted.nonce : undefined;
  const identified = { sub, aud: CONSOLE_CLIENT, token_use: "id", client_id: undefined, nonce };
  return json(response, 200, {
    token_type: "Bearer",
    expires_in: accessSeconds,
    access_token: await identity.mint({ sub, client_id: CONSOLE_CLIENT }, { expiresInSeconds: accessSeconds }),
    id_token: await identity.mint(identified, { expiresInSeconds: ACCESS_SECONDS }),
    // `take` has removed the refresh token of this request, so the client needs a new one for its next request.
    refresh_token: keep(refreshTokens, { sub, accessSeconds: ACCESS_SECONDS }),
  });
}

/**
 * Returns the code if it is valid (RFC 7636). Otherwise it returns undefined. A code is valid under three conditions:
 * - It has not expired.
 * - The request has the redirect URL of the sign-in.
 * - The code verifier matches the code challenge, so the client of this request is the client that began the sign-in.
 */
function redeemed(
  code: Code | undefined,
  asked: { readonly redirect_uri: string; readonly code_verifier: string },
  redirectUri: string,
): Code | undefined {
  const challenge = createHash("sha256").update(asked.code_verifier).digest("base64url");
  const isValid =
    code !== undefined && code.until > Date.now() && asked.redirect_uri === redirectUri && challenge === code.challenge;
  return isValid ? code : undefined;
}

/** Stores a value under a new random key, and returns the key. */
function keep<Value>(values: Map<string, Value>, value: Value): string {
  for (const oldest of values.keys()) {
    if (values.size < KEPT) break;
    values.delete(oldest);
  }
  const name = randomBytes(32).toString("base64url");
  values.set(name, value);
  return name;
}

/** Returns a value and removes it, because codes and refresh tokens are valid only once. */
function take<Value>(values: Map<string, Value>, name: string): Value | undefined {
  const value = values.get(name);
  values.delete(name);
  return value;
}

/**
 * The style sheet of the sign-in page. It repeats colours and shapes of the console, because the page does not load the console's style
 * sheet.
 */
const STYLE = `
*{box-sizing:border-box}
body{margin:0;padding:16px;background:#f6f7f9;color:#17202b;font:14px/1.5 Inter,"Segoe UI",system-ui,Roboto,Arial,sans-serif}
main{max-width:400px;margin:6vh auto;padding:24px;background:#fff;border:1px solid #e3e7ec;border-radius:14px;box-shadow:0 4px 16px #10182814}
h1{margin:0;font-size:22px;line-height:1.25}
p{margin:4px 0 16px;color:#5b6876}
form+form{margin-top:20px;padding-top:20px;border-top:1px solid #e3e7ec}
label{display:block;margin-bottom:8px;font-size:12.5px;font-weight:550}
input,button{width:100%;min-height:40px;padding:0 12px;border:1px solid #c5ccd5;border-radius:8px;background:#fff;color:inherit;font:inherit}
input{margin-top:4px;border-color:#838e9c}
button{margin-top:6px;font-weight:550;text-align:left;cursor:pointer}
button:hover{background:#eff2f5}
label+button{border-color:#0f766e;background:#0f766e;color:#fff;text-align:center}
label+button:hover{background:#0b5f59}
:focus-visible{outline:2px solid #0f766e;outline-offset:2px}
`;
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

const buttons = (users: readonly string[]): string => `<form method="post">
${users.map((email) => `<button name="email" value="${email}">${email}</button>`).join("\n")}
</form>
<form method="post"><label>Another user <input name="email" type="email" required></label><button>Sign in</button></form>`;

function page(response: ServerResponse, status: number, content: string): void {
  response
    .writeHead(status, {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
    })
    .end(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Local sign-in</title><style>${STYLE}</style></head>
<body><main><h1>Sign in as a demo user</h1>
<p>This page belongs to the local service. It needs no password.</p>
${content}</main></body>
</html>
`);
}

function json(response: ServerResponse, status: number, body: object): void {
  response
    .writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" })
    .end(JSON.stringify(body));
}
