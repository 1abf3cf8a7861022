/** Tests the words of the console for the scopes of API keys. */
import { expect, test } from "vitest";
import { Scope } from "#shared/auth/scopes.ts";
import { linesOf, scopeTexts } from "../../console/src/keys/scopes.ts";

test("the console has a text of its own for each scope", () => {
  expect(scopeTexts.map(([scope]) => scope)).toEqual(Scope.options);
  expect(new Set(scopeTexts.map(([, text]) => text)).size).toBe(Scope.options.length);
});

test("the scopes of a key are grouped by the kind of record, and a later scope is shown by its name", () => {
  const scopes = ["prospects:read", "territories:write", "webhooks:manage", "prospects:export", "doors:open"];
  expect(linesOf(scopes)).toEqual(["Prospects: read, export", "Territories: change", "Webhooks", "doors:open"]);
});
