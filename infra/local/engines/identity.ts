/** Issues access tokens in the format of Cognito's tokens, and serves the public keys that verify them. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { OAuth2Issuer, OAuth2Service } from "oauth2-mock-server";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { readStored } from "../servers/stored.ts";

export const AUDIENCE = "local";
export const JWKS_PATH = "/.well-known/jwks.json";
const TOKEN_SECONDS = 12 * 3_600;

export type Identity = Awaited<ReturnType<typeof createIdentity>>;
type Claims = Readonly<{ sub: string; [name: string]: unknown }>;

/** A private RSA key as JWK. The fields that are not listed are the numbers of the key. */
export const SigningKey = z.catchall(z.object({ kid: z.string(), alg: z.string(), kty: z.string() }), z.string());
export type SigningKey = z.infer<typeof SigningKey>;

/** Creates the token issuer. `keyFile` has its key, so that tokens stay valid after a restart. Without a file, each start has a new key. */
export async function createIdentity(issuerUrl: string, keyFile: string | undefined) {
  const issuer = new OAuth2Issuer();
  issuer.url = issuerUrl;
  const stored = readStored(keyFile, SigningKey);
  if (stored === undefined) await issuer.keys.generate("RS256");
  else await issuer.keys.add(stored);
  const signingKey = z.parse(SigningKey, issuer.keys.toJSON(true)[0]);
  if (keyFile !== undefined && stored === undefined)
    writeFileSync(keyFile, JSON.stringify(signingKey), { mode: 0o600 });
  const service = new OAuth2Service(issuer, { jwks: JWKS_PATH });
  return {
    issuer: issuerUrl,
    signingKey,
    /** Serves the paths of the issuer. The caller must first remove the path of `issuer` from the request's path. */
    service,
    mint: (claims: Claims, { expiresInSeconds = TOKEN_SECONDS }: { expiresInSeconds?: number } = {}) =>
      issuer.buildToken({
        expiresIn: expiresInSeconds,
        scopesOrTransform: (_header, payload) => {
          Object.assign(payload, { client_id: AUDIENCE, token_use: "access", jti: randomUUID(), ...claims });
        },
      }),
  };
}

const Address = z.object({ companyId: z.int(), userId: z.int() });
const CompanyAddress = z.object({ sk: z.string(), userId: z.int() });
const User = z.object({ sub: z.string(), isWithdrawn: z.optional(z.literal(true)) });

/** Returns a user's subject, also after the withdrawal of the invitation: tests check that the service refuses tokens of these users. */
export async function subjectOf(table: Table, email: string): Promise<string | undefined> {
  const address = email.toLowerCase();
  const userAt = async (companyId: number, userId: number) =>
    z.parse(User, await table.get(keys.user(companyId, userId)));
  const owned = await table.get(keys.email(address));
  if (owned !== undefined) {
    const { companyId, userId } = z.parse(Address, owned);
    return (await userAt(companyId, userId)).sub;
  }
  const { pk, sk } = keys.companyEmail(0, address);
  const begins = sk.slice(0, -1);
  for await (const item of table.query({ pk, begins })) {
    const found = z.parse(CompanyAddress, item);
    const { sub, isWithdrawn } = await userAt(Number(found.sk.slice(begins.length)), found.userId);
    if (isWithdrawn === true) return sub;
  }
  return undefined;
}
