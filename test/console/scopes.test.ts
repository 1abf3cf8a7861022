/** Tests the words of the console for the scopes of API keys. */
import { expect, test } from "vitest";
import { Scope } from "#shared/auth/scopes.ts";
import { scopeText, scopeTexts } from "../../console/src/keys/scopes.ts";

test("the console has a text of its own for each scope, and shows a later scope by its name", () => {
  expect(scopeTexts.map(([scope]) => scope)).toEqual(Scope.options);
  expect(new Set(scopeTexts.map(([, text]) => text)).size).toBe(Scope.options.length);
  expect(scopeText("doors:open")).toBe("doors:open");
});
