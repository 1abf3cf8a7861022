/** Tests for every route that an API key may do what its scopes, its account and its creator all permit, and nothing else. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { type Caller, common, contextOf, type Rights } from "#shared/auth/caller.ts";
import { Scope } from "#shared/auth/scopes.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import type { Contract } from "#shared/http/contract.ts";
import { requestChain } from "#shared/http/endpoint.ts";
import { readRequest } from "#shared/http/request.ts";
import type { Route } from "../../infra/routes/route.ts";
import { routes } from "../../infra/routes/routes.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";
import { scopesNeeded } from "./scopes-of-routes.ts";

const guarded = routes.filter((route) => !route.public);

const hasContract = (handler: unknown): handler is { contract: Contract } =>
  handler !== null && (typeof handler === "function" || typeof handler === "object") && "contract" in handler;

async function contractOf({ file }: Route): Promise<Contract> {
  const module: unknown = await import(pathToFileURL(join(import.meta.dirname, "../../functions", `${file}.ts`)).href);
  const handler = typeof module === "object" && module !== null && "handler" in module ? module.handler : undefined;
  if (!hasContract(handler)) throw new Error(`functions/${file}.ts has no contract`);
  return handler.contract;
}

const contracts = await Promise.all(guarded.map(async (route) => ({ route, contract: await contractOf(route) })));

const allRights: readonly Rights[] = Role.options.flatMap((role) =>
  [[], ...Permission.options.map((one) => [one]), [...Permission.options]].map((permissions) => ({
    role,
    permissions,
  })),
);

/** Returns true if a user with these rights may call a route with this `allow`. The function shares no code with the service. */
function personMay({ role, permissions }: Rights, allow: Contract["allow"]): boolean {
  if (allow === "everyone" || role === "owner" || role === "admin") return true;
  return allow !== "admin" && permissions.includes(allow);
}

/** Returns the error code of the refusal. Returns "allowed" if the request passes all checks of rights. */
async function refusalOf(contract: Contract, caller: Caller): Promise<string> {
  const open = { reserveMs: 0, services: () => undefined };
  const chain = requestChain({ allow: contract.allow, scope: contract.scope, ...bare }, open, async () => "allowed");
  const event = proxyEvent(contextOf(caller));
  const answer = await chain({ ...event, request: readRequest(event) }, lambdaContext);
  return typeof answer === "string" ? answer : JSON.parse(answer.body).code;
}
const bare = { summary: "", status: 200, response: Scope } as const;

const same = (contract: Contract): string => JSON.stringify([contract.allow, contract.scope]);
/** One contract for each combination of `allow` and `scope`, because only these two fields decide who may call a route. */
const kinds = [...new Map(contracts.map(({ contract }) => [same(contract), contract])).values()];

test("a contract without a scope does not compile", () => {
  // @ts-expect-error
  const contract: Contract = { summary: "", allow: "everyone", status: 200, response: Scope };
  expect(contract.scope).toBeUndefined();
});

test("a key may do what its scopes, its account and its creator permit, and nothing else", async () => {
  const scopeSets: readonly (readonly Scope[])[] = [...Scope.options.map((scope) => [scope]), [...Scope.options]];
  const answers = new Map<string, Promise<string>>();
  const answerTo = (contract: Contract, caller: Caller): Promise<string> => {
    const key = JSON.stringify([same(contract), contextOf(caller)]);
    const known = answers.get(key) ?? refusalOf(contract, caller);
    answers.set(key, known);
    return known;
  };
  for (const contract of kinds) {
    const { route } = contracts.find((one) => same(one.contract) === same(contract)) ?? expect.fail("no route");
    const needed = scopesNeeded(route);
    for (const scopes of scopeSets) {
      const hasScope = needed === "none" || scopes.some((scope) => needed.includes(scope));
      for (const account of allRights) {
        for (const creator of allRights) {
          const caller: Caller = { companyId: 1, userId: 2, ...common(account, creator), key: { id: "abc", scopes } };
          const mayBoth = personMay(account, contract.allow) && personMay(creator, contract.allow);
          const expected = hasScope ? (mayBoth ? "allowed" : "permission_denied") : "insufficient_scope";
          const place = () => JSON.stringify({ route: route.path, scopes, account, creator });
          expect(await answerTo(contract, caller), place()).toBe(expected);
        }
      }
    }
  }
});
