/** The e-mail addresses of the demo users. */
import companies from "./companies.json" with { type: "json" };

export const demoUsers: readonly string[] = companies.flatMap(({ users }) => users.map(({ email }) => email));
