/** An identity provider for all test files of a process, because a process can verify the tokens of only one issuer. */
import { generateKeyPairSync, randomUUID, sign } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { ConsoleClient } from "#shared/sessions/issuer.ts";
import { beginSession, refreshSession } from "#shared/sessions/sessions.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

export const publicKeys = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256", use: "sig" }] };

export function tokenOf(iss: string, sub: string, clientId: string, kid = "k"): string {
  const exp = Math.floor(Date.now() / 1_000) + 600;
  const claims = { iss, sub, client_id: clientId, token_use: "access", exp, jti: randomUUID() };
  const input = `${encode({ alg: "RS256", typ: "JWT", kid })}.${encode(claims)}`;
  return `${input}.${sign("sha256", Buffer.from(input), privateKey).toString("base64url")}`;
}

export interface Issuer {
  readonly client: ConsoleClient;
  /** Called for each refresh. Returns the subject of the new tokens, or undefined to break the connection without an answer. */
  answer: () => Promise<string | undefined>;
}

let started: Promise<Issuer> | undefined;

export function tokenIssuer(): Promise<Issuer> {
  started ??= start();
  return started;
}

/** Begins a session of the console. `refresh` refreshes the session, and `asked` counts the refreshes that have reached the issuer. */
export async function sessionAt(context: ApiContext, { companyId, userId }: Caller, accessUntil: number) {
  const issuer = await tokenIssuer();
  const sub = String((await context.table.get(keys.user(companyId, userId)))?.sub);
  const tokens = { sub, access: "a", refresh: "r", accessUntil };
  const { id } = await beginSession(context, issuer.client.clientId, tokens, undefined);
  const refresh = (table = context.table) => refreshSession({ ...context, table }, issuer.client, id);
  const at = { issuer, context, sub, id, refresh, asked: 0 };
  issuer.answer = async () => {
    at.asked++;
    return sub;
  };
  return at;
}

async function start(): Promise<Issuer> {
  const { endpoint: issuer, unref } = await serveOnLoopback(async (request, response) => {
    const { issuer: iss, clientId } = running.client;
    const sound: Readonly<Record<string, () => object | Promise<object | undefined>>> = {
      "/keys": () => publicKeys,
      "/.well-known/openid-configuration": () => ({
        issuer: iss,
        authorization_endpoint: `${iss}/authorize`,
        jwks_uri: `${iss}/keys`,
        token_endpoint: `${iss}/token`,
      }),
      "/token": async () => {
        const sub = await running.answer();
        return sub && { access_token: tokenOf(iss, sub, clientId), token_type: "bearer", expires_in: 600 };
      },
    };
    const body = await sound[request.url ?? ""]?.();
    if (body === undefined) request.socket.destroy();
    else response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
  });
  unref();
  const client = { issuer, clientId: "console", redirectUri: "http://127.0.0.1/" };
  const running: Issuer = { client, answer: async () => undefined };
  process.env.ISSUER = issuer;
  return running;
}
