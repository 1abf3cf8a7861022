/** Compares the authorizer's work for an API key and for an access token: the units of the table, and the ratio of the processor times. */
import { generateKeyPairSync, sign } from "node:crypto";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { tokenSubjects } from "#shared/auth/token.ts";
import { contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import * as limits from "#shared/limits.ts";
import { getUser } from "#shared/reference/users.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { createAccount, createKey } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import type { Budget } from "./budget.ts";
import { interleaved } from "./clock.ts";
import type { BenchTable } from "./table.ts";

const RUNS = 21;
const REQUESTS_OF_A_RUN = 50;
const AUDIENCE = "app";

/** An issuer with one key, and a function that makes its access tokens. */
async function startIssuer() {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256", use: "sig" };
  const { endpoint: issuer, stop } = await serveOnLoopback(async (_, response) => {
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ keys: [jwk] }));
  });
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const tokenOf = (sub: string): string => {
    const exp = Math.floor(Date.now() / 1_000) + 3_600;
    const claims = { iss: issuer, sub, client_id: AUDIENCE, token_use: "access", exp };
    const input = `${encode({ alg: "RS256", typ: "JWT", kid: "k" })}.${encode(claims)}`;
    return `${input}.${sign("sha256", Buffer.from(input), privateKey).toString("base64url")}`;
  };
  return { issuer, tokenOf, stop };
}

/** Returns a key of an account with the maximum number of keys, because one row contains all keys of an account. */
async function setUp(table: BenchTable) {
  const context = contextOn(table.open());
  const owner = await newOwner(context);
  const { sub } = await getUser(context, owner.companyId, owner.userId);
  const { id } = await createAccount(context, owner, { name: "program", role: "admin", permissions: [] });
  const fields = { name: "Production", scopes: ["prospects:read" as const, "prospects:write" as const] };
  for (let i = 1; i < limits.keysPerAccount; i++) await createKey(context, owner, id, fields);
  const { key } = await createKey(context, owner, id, fields);
  return { context, sub, key };
}

export async function authorizerBudgets(table: BenchTable): Promise<Budget[]> {
  const { issuer, tokenOf, stop } = await startIssuer();
  try {
    const { context, sub, key } = await setUp(table);
    const subjectOf = tokenSubjects({ issuer, jwksUri: `${issuer}/keys` });
    const token = tokenOf(sub);
    const byToken = async () => lookUpCaller(context, await subjectOf(token, [AUDIENCE]));
    const byKey = () => callerOfKey(context, key);
    const first = (await metered(byKey)).usage;
    const [ofKey, ofToken] = [(await metered(byKey)).usage, (await metered(byToken)).usage];
    const many = (work: () => Promise<unknown>) => async () => {
      for (let i = 0; i < REQUESTS_OF_A_RUN; i++) await work();
    };
    const times = await interleaved(RUNS, { key: many(byKey), token: many(byToken) });
    const ratio = (times.get("key")?.cpuMs ?? Number.NaN) / (times.get("token")?.cpuMs ?? Number.NaN);
    const line = (text: string, limit: number, measured: number): Budget => ({
      number: 3,
      text,
      size: "",
      limit,
      measured,
    });
    return [
      line("authorizer with an access token, read units", 1, ofToken.readUnits),
      line("authorizer with an API key, read units", 1, ofKey.readUnits),
      line("authorizer with an API key, write units in 15 minutes", 2, first.writeUnits + ofKey.writeUnits),
      line("authorizer with an API key / with an access token, CPU time", 1.5, ratio),
    ];
  } finally {
    stop();
  }
}
