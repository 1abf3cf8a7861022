/** The scope that each route needs according to the contract of the API. The list shares no code with the functions. */
import type { Scope } from "#shared/auth/scopes.ts";

interface Rule {
  readonly path: RegExp;
  /** The scopes for GET requests, and for all others (`write`). One scope of a list is enough. */
  readonly read: Needed;
  readonly write: Needed;
}
export type Needed = readonly Scope[] | "none";

const both = (needed: Needed): Pick<Rule, "read" | "write"> => ({ read: needed, write: needed });
const prospects = (write: Needed) => ({ read: ["prospects:read"], write }) satisfies Pick<Rule, "read" | "write">;
const WRITE: Needed = ["prospects:write"];
/** A route of jobs needs one of these scopes. Which one it is depends on what the job does to the prospects. */
const OF_JOBS: Needed = ["prospects:write", "prospects:delete"];

/** For each path, only the first matching rule counts. */
const rules: readonly Rule[] = [
  { path: /^\/api\/me$/, ...both("none") },
  { path: /^\/api\/(service-accounts)/, ...both(["keys:manage"]) },
  { path: /^\/api\/webhooks/, ...both(["webhooks:manage"]) },
  { path: /^\/api\/users/, ...prospects(["users:manage"]) },
  { path: /^\/api\/(statuses|tags|addresses)/, ...prospects(["reference:write"]) },
  { path: /^\/api\/prospects\/exports?($|\/)/, ...both(["prospects:export"]) },
  { path: /^\/api\/prospects\/imports?($|\/)/, ...both(["prospects:import"]) },
  { path: /^\/api\/jobs\/\{id\}\/undo$/, ...both(WRITE) },
  // The undo of an import is also a job, so the scope for imports may read jobs.
  { path: /^\/api\/jobs/, read: [...OF_JOBS, "prospects:import"], write: OF_JOBS },
  { path: /^\/api\/prospects\/bulk/, ...both(OF_JOBS) },
  { path: /^\/api\/sync\/operations$/, ...both(OF_JOBS) },
  { path: /^\/api\/prospects\/search$/, ...both(["prospects:read"]) },
  { path: /^\/api\/(prospects|notes|appointments|changes|reports)/, ...prospects(WRITE) },
  { path: /^\/api\/territories\/\{id\}\/(stats|runs)$/, ...prospects(WRITE) },
  { path: /^\/api\/territories/, read: ["territories:read"], write: ["territories:write"] },
];

export function scopesNeeded({ method, path }: { readonly method: string; readonly path: string }): Needed {
  if (method === "DELETE" && path === "/api/prospects/{id}") return ["prospects:delete"];
  const rule = rules.find((one) => one.path.test(path));
  if (rule === undefined) throw new Error(`${method} ${path} has no scope: add it to the contract of the API and here`);
  return method === "GET" ? rule.read : rule.write;
}
