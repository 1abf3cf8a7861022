/** The OpenID Connect issuer of this machine. It signs access tokens like Cognito's for any user of the directory. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { OAuth2Issuer, OAuth2Service } from "oauth2-mock-server";
import * as z from "zod/mini";
import { keys } from "#shared/db/keys.ts";
import type { AwsCall } from "./aws-json.ts";

/** The client that local tokens are made out to. */
export const AUDIENCE = "local";
/** Where the issuer's keys are, below its address. */
export const JWKS_PATH = "/.well-known/jwks.json";
const TOKEN_SECONDS = 12 * 3_600;

export interface Identity {
  readonly issuer: string;
  /** The private key as a JWK: for tests that forge tokens. */
  readonly signingKey: SigningKey;
  /** Serves discovery and keys below the issuer's path, with that path cut off. */
  readonly handle: RequestListener;
  mint(claims: Claims, options?: { expiresInSeconds?: number }): Promise<string>;
}

export interface Claims {
  readonly sub: string;
  readonly [name: string]: unknown;
}

/** A private RSA key. */
export const SigningKey = z.object({
  kid: z.string(),
  alg: z.string(),
  kty: z.string(),
  n: z.string(),
  e: z.string(),
  d: z.string(),
  p: z.string(),
  q: z.string(),
  dp: z.string(),
  dq: z.string(),
  qi: z.string(),
});
export type SigningKey = z.infer<typeof SigningKey>;

/** @param keyFile keeps the key, so that tokens live through a restart; undefined makes one for this run. */
export async function createIdentity(issuerUrl: string, keyFile: string | undefined): Promise<Identity> {
  const issuer = new OAuth2Issuer();
  issuer.url = issuerUrl;
  const kept =
    keyFile !== undefined && existsSync(keyFile)
      ? z.parse(SigningKey, JSON.parse(readFileSync(keyFile, "utf8")))
      : undefined;
  if (kept === undefined) await issuer.keys.generate("RS256");
  else await issuer.keys.add(kept);
  const signingKey = z.parse(SigningKey, issuer.keys.toJSON(true)[0]);
  if (keyFile !== undefined && kept === undefined) writeFileSync(keyFile, JSON.stringify(signingKey), { mode: 0o600 });
  const service = new OAuth2Service(issuer, { jwks: JWKS_PATH });
  return {
    issuer: issuerUrl,
    signingKey,
    handle: service.requestHandler,
    mint: (claims, { expiresInSeconds = TOKEN_SECONDS } = {}) =>
      issuer.buildToken({
        expiresIn: expiresInSeconds,
        scopesOrTransform: (_header, payload) => {
          Object.assign(payload, { client_id: AUDIENCE, token_use: "access", jti: randomUUID(), ...claims });
        },
      }),
  };
}

const Key = { pk: z.object({ S: z.string() }), sk: z.object({ S: z.string() }) };
const Claim = z.object({ companyId: z.object({ N: z.string() }), userId: z.object({ N: z.string() }) });
const CompanyEmail = z.object({ ...Key, userId: z.object({ N: z.string() }) });
const User = z.object({
  sub: z.object({ S: z.string() }),
  isWithdrawn: z.optional(z.object({ BOOL: z.literal(true) })),
});
const Found = z.object({ Item: z.optional(z.unknown()) });
const Listed = z.object({ Items: z.array(CompanyEmail) });

/**
 * The token subject of the user with this address, from the service's own directory: of the one who has the claim on it, or of
 * one whose invitation was withdrawn. The service refuses the token of the latter.
 */
export async function subjectOf(dynamoDb: AwsCall, tableName: string, email: string): Promise<string | undefined> {
  const ConsistentRead = true;
  const get = async ({ pk, sk }: { pk: string; sk: string }): Promise<unknown> => {
    const Key = { pk: { S: pk }, sk: { S: sk } };
    return z.parse(Found, await dynamoDb("GetItem", { TableName: tableName, Key, ConsistentRead })).Item;
  };
  const userAt = async (companyId: number, userId: string) =>
    z.parse(User, await get(keys.user(companyId, Number(userId))));
  const address = email.toLowerCase();
  const claim = await get(keys.email(address));
  if (claim !== undefined) {
    const { companyId, userId } = z.parse(Claim, claim);
    return (await userAt(Number(companyId.N), userId.N)).sub.S;
  }
  const { pk, sk } = keys.companyEmail(0, address);
  const query = {
    TableName: tableName,
    ConsistentRead,
    KeyConditionExpression: "pk = :pk AND begins_with(sk, :company)",
    ExpressionAttributeValues: { ":pk": { S: pk }, ":company": { S: sk.slice(0, -1) } },
  };
  for (const found of z.parse(Listed, await dynamoDb("Query", query)).Items) {
    const user = await userAt(Number(found.sk.S.slice(sk.length - 1)), found.userId.N);
    if (user.isWithdrawn !== undefined) return user.sub.S;
  }
  return undefined;
}
