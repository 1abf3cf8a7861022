/** Simulates the operations of a Cognito user pool that the admin commands use. */
import * as z from "zod/mini";

/** The subject (the user's id in the pool) of each user, by e-mail address. */
export type PoolUsers = Map<string, string>;

export interface PoolAnswer {
  readonly status: number;
  readonly body: object;
}

const Asked = z.object({ Username: z.string() });

/** Answers a request to the user pool. `operation` is the name of the API operation, for example `AdminGetUser`. */
export function answerPool(users: PoolUsers, operation: string | undefined, body: string): PoolAnswer {
  const { Username } = Asked.parse(JSON.parse(body));
  const sub = users.get(Username);
  const refused = (__type: string): PoolAnswer => ({ status: 400, body: { __type, message: Username } });
  const attributes = (value: string) => [{ Name: "sub", Value: value }];
  if (operation === "AdminCreateUser") {
    if (sub !== undefined) return refused("UsernameExistsException");
    users.set(Username, `sub-${Username}`);
    return { status: 200, body: { User: { Username, Attributes: attributes(`sub-${Username}`) } } };
  }
  if (sub === undefined) return refused("UserNotFoundException");
  if (operation === "AdminGetUser") return { status: 200, body: { Username: sub, UserAttributes: attributes(sub) } };
  if (operation === "AdminDeleteUser") users.delete(Username);
  else if (operation !== "AdminSetUserPassword") return refused("UnknownOperationException");
  return { status: 200, body: {} };
}
