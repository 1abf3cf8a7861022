/** Tests the constants of limits.ts about sessions of the console at their value and one beyond. */
import { expect } from "vitest";
import { readRequest } from "#shared/http/request.ts";
import type * as limits from "#shared/limits.ts";
import { cookiesOf } from "#shared/sessions/endpoint.ts";
import { digestOf } from "#shared/sessions/session-id.ts";
import { beginSignIn } from "#shared/sessions/sign-in.ts";
import { readSession } from "#shared/sessions/stored.ts";
import { proxyEvent } from "../harness/proxy-event.ts";
import { sessionAt, tokenIssuer } from "../harness/token-issuer.ts";
import { type Case, company, letters, NOW } from "./limit-stage.ts";

const ORIGIN = "https://a.test";

/** Begins a session whose access token expires after `leftMs` milliseconds. */
async function signedIn(leftMs = 0) {
  const { context, caller, now } = await company();
  const at = await sessionAt(context, caller, NOW + leftMs);
  const isOpen = async () => (await readSession(context, digestOf(at.id))) !== undefined;
  return Object.assign(at, { now, isOpen });
}
type At = Awaited<ReturnType<typeof signedIn>>;

async function isOpenAfter({ now, isOpen }: At, ms: number): Promise<boolean> {
  now.ms = NOW + ms;
  return isOpen();
}

/**
 * The issuer does not answer the first refresh. Returns true if a second refresh, `ms` milliseconds later, sends a request to the issuer
 * too.
 */
async function asksAgainAfter(ms: number): Promise<boolean> {
  const at = await signedIn();
  const { table } = at.context;
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<string>();
  const { answer } = at.issuer;
  at.issuer.answer = () => {
    asked.resolve();
    return released.promise;
  };
  const first = at.refresh();
  await asked.promise;
  at.issuer.answer = answer;
  at.now.ms = NOW + ms;
  const write: typeof table.write = (one) => table.write(one).finally(() => released.resolve(at.sub));
  await Promise.all([first, at.refresh({ ...table, write })]);
  return at.asked > 0;
}

export const sessions = {
  sessionMs: {
    is: async (ms) => {
      const at = await signedIn();
      expect([await isOpenAfter(at, ms - 1), await isOpenAfter(at, ms)]).toEqual([true, false]);
    },
  },
  signInMs: {
    is: (ms) => expect(cookiesOf(ORIGIN).signIn.set("v")).toContain(`; Max-Age=${ms / 1_000};`),
  },
  sessionOverlapMs: {
    is: async (ms) => {
      const at = await signedIn();
      expect((await at.refresh()).id).toBeDefined();
      expect([await isOpenAfter(at, ms - 1), await isOpenAfter(at, ms)]).toEqual([true, false]);
    },
  },
  refreshBeforeMs: {
    most: async (ms) => {
      const at = await signedIn(ms);
      const isRefreshed = (await at.refresh()).id !== undefined;
      expect(at.asked).toBe(isRefreshed ? 1 : 0);
      return isRefreshed;
    },
  },
  refreshMs: {
    is: async (ms) => expect([await asksAgainAfter(ms), await asksAgainAfter(ms + 1)]).toEqual([false, true]),
  },
  returnTo: {
    most: async (length) => {
      const { client } = await tokenIssuer();
      const path = `/${letters(length - 1)}`;
      const request = { ...readRequest(proxyEvent(null)), queryParameters: new Map([["returnTo", [path]]]) };
      const cookies = cookiesOf(ORIGIN);
      const context = () => expect.fail("no context is needed");
      const { setCookies = [] } = await beginSignIn({ context, request, client, origin: ORIGIN, cookies });
      const [, value = ""] = /^[^=]+=([^;]+);/.exec(setCookies[0] ?? "") ?? [];
      const begun: unknown = JSON.parse(Buffer.from(value, "base64url").toString());
      return Object(begun).returnTo === path;
    },
  },
} as const satisfies Partial<Record<keyof typeof limits, Case>>;
