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

/** A scope of a later release has no text here. */
export const scopeText = (scope: string): string => texts.get(scope) ?? scope;
