/** Makes the handlers of the console's sign-in, refresh and sign-out. Unlike other endpoints, they set cookies and need no token. */
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import * as z from "zod/mini";
import { setting } from "#shared/config.ts";
import { type ApiContext, apiContext } from "#shared/context.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { ApiError } from "#shared/errors.ts";
import { commonHeaders, problemAnswer } from "#shared/http/answer.ts";
import { answering } from "#shared/http/endpoint.ts";
import type { Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import type { ConsoleClient } from "#shared/sessions/issuer.ts";

const DEADLINE_RESERVE_MS = 1_000;

/** The value of `X-Requested-With` in the console's requests. Browsers do not let other origins send it, so it protects against CSRF. */
const REQUESTED_WITH = "canvassing-console";

export interface SessionCall {
  /** A function, so that the redirect to the sign-in page, which needs no context, creates none. */
  readonly context: () => ApiContext;
  readonly request: Request;
  readonly client: ConsoleClient;
  /** The origin of the console, for example `https://console.example.com`. */
  readonly origin: string;
  readonly cookies: Cookies;
}

export interface SessionAnswer {
  readonly status: 200 | 204 | 302 | 400 | 403;
  readonly setCookies?: readonly string[];
  readonly location?: string;
  readonly body?: string;
  readonly mediaType?: "application/json" | "text/html; charset=utf-8";
}

interface SessionDocument {
  readonly summary: string;
  readonly description: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly answers: Readonly<Record<number, { readonly description: string; readonly mediaType?: "text/html" }>>;
  readonly problems: readonly number[];
}

/** Stage variables of API Gateway. The functions have no such settings, because they are created before the console's address is known. */
const Console = z.object({ consoleUrl: z.url(), consoleClient: z.string() });

export function sessionEndpoint(session: SessionDocument, work: (call: SessionCall) => Promise<SessionAnswer>) {
  const serve = async (event: APIGatewayProxyEvent, request: Request): Promise<APIGatewayProxyResult> => {
    const console = z.safeParse(Console, event.stageVariables ?? {});
    if (!console.success) throw new ApiError("not_found", "This deployment has no console.");
    const { consoleUrl: origin, consoleClient: clientId } = console.data;
    const client = clientOf(origin, clientId);
    const answer = await work({ context: apiContext, request, client, origin, cookies: cookiesOf(origin) });
    return {
      statusCode: answer.status,
      headers: {
        ...commonHeaders(request),
        ...(answer.mediaType !== undefined && { "Content-Type": answer.mediaType }),
        ...(answer.location !== undefined && { Location: answer.location }),
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
      },
      // API Gateway can send a header several times only if it is in this field.
      ...(answer.setCookies !== undefined && { multiValueHeaders: { "Set-Cookie": [...answer.setCookies] } }),
      body: answer.body ?? "",
    };
  };
  const handle = (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult> =>
    answering(event, ({ request }) =>
      stoppedAt(
        () => context.getRemainingTimeInMillis() - DEADLINE_RESERVE_MS,
        () => serve(event, request),
      ).catch((error: unknown) => problemAnswer(request, error)),
    );
  return Object.assign(handle, { session });
}

function clientOf(origin: string, clientId: string): ConsoleClient {
  const parameter = setting("CONSOLE_SECRET_PARAMETER");
  return {
    issuer: setting("ISSUER"),
    clientId,
    scope: setting("CONSOLE_SCOPE"),
    redirectUri: `${origin}/api/session/callback`,
    ...(parameter !== undefined && { secret: () => secretIn(parameter) }),
  };
}

let secret: Promise<string> | undefined;

function secretIn(parameter: string): Promise<string> {
  // Only clients with a secret need the SDK of the parameter store.
  secret ??= import("#shared/aws/ssm.ts").then(({ openParameters }) => openParameters().read(parameter));
  secret.catch(() => {
    secret = undefined;
  });
  return secret;
}

/** Throws unless a script of the console has sent the request. */
export function assertFromConsole({ headers }: Request): void {
  const values = headers.get("x-requested-with") ?? [];
  if (values.length === 1 && values[0] === REQUESTED_WITH) return;
  throw new ApiError("permission_denied", `The request needs the header X-Requested-With: ${REQUESTED_WITH}.`);
}

interface Cookies {
  readonly session: Cookie;
  readonly signIn: Cookie;
}

interface Cookie {
  /** Undefined if the cookie is missing or occurs twice, because one of two may be from another site. */
  read(request: Pick<Request, "headers">): string | undefined;
  /** Returns the value of a `Set-Cookie` header. */
  set(value: string): string;
  readonly clear: string;
}

/** Only this host itself can set a cookie with the prefix `__Host-`. A local service without https omits the prefix. */
export function cookiesOf(origin: string): Cookies {
  const isSecure = origin.startsWith("https://");
  const named = (name: string, sameSite: "Strict" | "Lax", maxAgeMs: number): Cookie => {
    const full = isSecure ? `__Host-${name}` : name;
    const attributes = `Path=/; HttpOnly; SameSite=${sameSite}${isSecure ? "; Secure" : ""}`;
    return {
      read: (request) => cookieValue(request, full),
      set: (value) => `${full}=${value}; Max-Age=${Math.floor(maxAgeMs / 1_000)}; ${attributes}`,
      clear: `${full}=; Max-Age=0; ${attributes}`,
    };
  };
  return {
    session: named("session", "Strict", limits.sessionMs),
    // The identity provider redirects the browser from another site. With such a request, browsers send Lax cookies, but no Strict ones.
    signIn: named("sign-in", "Lax", limits.signInMs),
  };
}

function cookieValue({ headers }: Pick<Request, "headers">, name: string): string | undefined {
  const values = (headers.get("cookie") ?? [])
    .flatMap((line) => line.split(";"))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}
