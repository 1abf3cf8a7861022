/** The e-mail addresses of the demo users, and their roles. */
import companies from "./companies.json" with { type: "json" };

export const demoRoles: ReadonlyMap<string, string> = new Map(
  companies.flatMap(({ users }) => users.map(({ email, role }) => [email, role] as const)),
);

export const demoUsers: readonly string[] = [...demoRoles.keys()];
