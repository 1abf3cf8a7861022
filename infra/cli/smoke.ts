/** Implements `npm run smoke -- [--base URL]`: checks over HTTP that prospects and webhooks work on a running service. */

import * as z from "zod/mini";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { apiAt } from "#shared/smoke/api.ts";
import { accessToken, Credentials } from "#shared/smoke/sign-in.ts";
import { runSmoke } from "#shared/smoke/story.ts";
import { localToken } from "../local/local-token.ts";
import { serviceUrl } from "../local/servers/address.ts";
import { HttpUrl, wholeNumber } from "./command/accepted.ts";
import { messageOf } from "./command/error.ts";
import { checked, nameTarget, optionsIn, optionsOf, runCommand, WrongUsage } from "./command/options.ts";

const usage = `npm run smoke -- [--base URL] [--changes N]
    checks that prospects and webhooks work on a running service, which sends the webhooks to its own POST /health/webhooks
    --base URL    the service, without /api (default: the local one, whose demo users need no credentials)
    --changes N   further status changes (default: 200 on the local service, otherwise 10)
credentials of a deployed service are environment variables, one of
    SMOKE_TOKEN                                      an access token
    SMOKE_USER, SMOKE_PASSWORD, SMOKE_USER_POOL_ID, SMOKE_CLIENT_ID    a user of a Cognito pool; needs AWS credentials
    SMOKE_REFRESH_TOKEN, SMOKE_CLIENT_ID             a refresh token of a Cognito pool; with SMOKE_TOKEN_URL of any issuer
    SMOKE_TOKEN_URL, SMOKE_CLIENT_ID, SMOKE_CLIENT_SECRET, [SMOKE_SCOPE]    a client of any issuer
the user must be an owner or admin. Further access tokens are optional:
    SMOKE_REP_TOKEN                                  a sales user of the same company
    SMOKE_OTHER_TOKEN                                a user of another company, who must see nothing
exit code 0: all steps passed, 1: a step failed, 2: wrong usage`;

const Options = z.object({
  base: z.optional(HttpUrl),
  changes: z.optional(wholeNumber(0, 9_999)),
});

const CHANGES = { local: 200, deployed: 10 } as const;
const PROSPECTS = 5;
const WEBHOOK_WAIT_MS = 60_000;

interface Users {
  readonly admin: string;
  readonly rep: string;
  readonly stranger?: string | undefined;
}

function credentialsIn(env: NodeJS.ProcessEnv): Credentials | undefined {
  const given = z.safeParse(Credentials, {
    accessToken: env.SMOKE_TOKEN,
    user: env.SMOKE_USER,
    password: env.SMOKE_PASSWORD,
    userPoolId: env.SMOKE_USER_POOL_ID,
    clientId: env.SMOKE_CLIENT_ID,
    tokenUrl: env.SMOKE_TOKEN_URL,
    clientSecret: env.SMOKE_CLIENT_SECRET,
    scope: env.SMOKE_SCOPE || undefined,
    refreshToken: env.SMOKE_REFRESH_TOKEN,
  });
  if (given.success) return given.data;
  const names = Object.keys(env).filter((name) => /^SMOKE_(?!PORT$)/.test(name));
  if (names.length > 0) throw new WrongUsage(`incomplete credentials: only ${names.join(", ")}\nusage: ${usage}`);
  return undefined;
}

async function users(base: string, credentials: Credentials | undefined): Promise<Users> {
  if (credentials === undefined) {
    const token = (email: string): Promise<string> => localToken(base, email);
    const [admin, rep] = [await token("admin@acme.test"), await token("rep@acme.test")];
    return { admin, rep, stranger: await token("owner@globex.test") };
  }
  const admin = await accessToken(credentials, () => cognitoClient());
  const { SMOKE_REP_TOKEN: rep = admin, SMOKE_OTHER_TOKEN: stranger } = process.env;
  return { admin, rep, stranger };
}

async function main(): Promise<undefined> {
  const { base: given = serviceUrl(), changes } = checked(
    Options,
    optionsOf(process.argv.slice(2), optionsIn(Options.shape), usage),
    usage,
  );
  const base = given.replace(/\/$/, "");
  const credentials = credentialsIn(process.env);
  const isLocal = credentials === undefined;
  nameTarget(`${isLocal ? "local service" : "service"} at ${base}`);
  const { admin, rep, stranger } = await users(base, credentials);
  let steps = 0;
  try {
    const delays = await runSmoke({
      admin: apiAt(base, admin),
      rep: apiAt(base, rep),
      ...(stranger !== undefined && { stranger: apiAt(base, stranger) }),
      base,
      webhookWaitMs: WEBHOOK_WAIT_MS,
      prospects: PROSPECTS,
      changes: changes ?? (isLocal ? CHANGES.local : CHANGES.deployed),
      step: (message) => console.log(`${String(++steps).padStart(2)}. ${message}`),
      now: Date.now,
    });
    const sorted = delays.toSorted((a, b) => a - b);
    console.log(`commit -> receiver: median ${percentile(sorted, 0.5)} ms, p99 ${percentile(sorted, 0.99)} ms`);
    const separation = stranger === undefined ? "" : ", separation of companies";
    console.log(`passed: prospects, map, ${delays.length} signed webhooks${separation} (${steps} steps at ${base})`);
  } catch (error) {
    throw new Error(`failed after step ${steps}: ${messageOf(error)}`);
  }
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

await runCommand(main);
