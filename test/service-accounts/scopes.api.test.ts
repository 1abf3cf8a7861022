/** Tests over HTTP that each route refuses an API key without the route's scope before it checks the request, and needs only this one. */
import { test } from "vitest";
import { Scope } from "#shared/auth/scopes.ts";
import { routes } from "../../infra/routes/routes.ts";
import { newAccount, newKeyOf } from "../harness/api-key.ts";
import { clientWith, json } from "../harness/client.ts";
import { problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { scopesNeeded } from "./scopes-of-routes.ts";

const as = await newTeam();
const guarded = routes.filter((route) => !route.public);
const NEVER = "999999999999999";

async function keyWith(scopes: readonly Scope[]): Promise<string> {
  const { id } = await newAccount(as.admin);
  return (await newKeyOf(as.admin, id, { scopes: [...scopes] })).key;
}

/** Caches keys by their scopes, so that routes with the same scope share a key. */
const known = new Map<string, Promise<string>>();
function keyOf(scopes: readonly Scope[]): Promise<string> {
  const found = known.get(scopes.join()) ?? keyWith(scopes);
  known.set(scopes.join(), found);
  return found;
}

/** A request that is wrong in every part: an unknown record, an unknown parameter and a body that is not JSON. */
const wrongRequest = (method: string, path: string, key: string) =>
  clientWith(async () => key).send(method, `${path.replace(/\{\w+\}/g, NEVER)}?unknown=1`, {
    headers: json,
    ...(method === "GET" ? {} : { body: "{" }),
  });

test.each(guarded.map(({ method, path }) => [method, path]))(
  "%s %s: a key without the scope of a route gets 403 before 400 and 404, and the scope alone is enough",
  async (method, path) => {
    const needed = scopesNeeded({ method, path });
    const missing = needed === "none" ? [] : Scope.options.filter((scope) => !needed.includes(scope));
    if (needed !== "none") problemOf(await wrongRequest(method, path, await keyOf(missing)), 403, "insufficient_scope");
    for (const scope of needed === "none" ? (["audit:read"] as const) : needed) {
      problemOf(await wrongRequest(method, path, await keyOf([scope])), 400, "validation_failed");
    }
  },
);
