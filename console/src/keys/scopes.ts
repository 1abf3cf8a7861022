/** The scopes of API keys in words. */
import type { ScopeInput } from "canvassing-client/api";

export const scopeTexts: readonly (readonly [scope: ScopeInput, text: string])[] = [
  ["prospects:read", "Prospects: read"],
  ["prospects:write", "Prospects: add and change"],
  ["prospects:delete", "Prospects: delete"],
  ["prospects:export", "Prospects: export"],
  ["prospects:import", "Prospects: import"],
  ["territories:read", "Territories: read"],
  ["territories:write", "Territories: change"],
  ["reference:write", "Statuses, tags, addresses: change"],
  ["webhooks:manage", "Webhooks"],
  ["users:manage", "Users"],
  ["keys:manage", "Service accounts and keys"],
  ["audit:read", "Audit log"],
];
const texts: ReadonlyMap<string, string> = new Map(scopeTexts);

/** Returns a line for each kind of record, such as `Prospects: read, export`. A scope of a later release is shown by its name. */
export function linesOf(scopes: readonly string[]): string[] {
  const parts = scopes.map((scope) => (texts.get(scope) ?? scope).split(": "));
  const kinds = Map.groupBy(parts, ([kind]) => kind);
  return [...kinds].map(([kind, all]) => {
    const verbs = all.flatMap(([, verb]) => verb ?? []);
    return verbs.length === 0 ? `${kind}` : `${kind}: ${verbs.join(", ")}`;
  });
}
