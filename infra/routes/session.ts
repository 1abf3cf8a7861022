/**
 * The routes for the console's sign-in, refresh and sign-out. They need no access token, because the browser uses them to get a session.
 */
import { namesChange } from "./access.ts";
import type { Route, TableAccess } from "./route.ts";

/** The rights to find a user by the subject of a token, and to accept the invitation of a user who signs in for the first time. */
export const signedInUser: TableAccess = {
  ...namesChange,
  identity: ["GetItem", "UpdateItem"],
  reference: ["GetItem", "UpdateItem"],
  email: ["UpdateItem"],
};

export const sessionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/api/session/login",
    file: "session/login",
    access: { console: "sign-in" },
    public: true,
  },
  {
    method: "GET",
    path: "/api/session/callback",
    file: "session/callback",
    access: {
      table: { ...signedInUser, sessions: ["PutItem", "DeleteItem"], sessionDataKeys: ["GetItem", "PutItem"] },
      issuer: "verify",
      console: "sign-in",
      sessionTokens: "make",
    },
    public: true,
  },
  {
    method: "POST",
    path: "/api/session/refresh",
    file: "session/refresh",
    access: {
      table: {
        identity: ["GetItem"],
        sessions: ["GetItem", "PutItem", "UpdateItem", "DeleteItem"],
        sessionDataKeys: ["GetItem"],
      },
      issuer: "verify",
      console: "sign-in",
      sessionTokens: "open",
    },
    public: true,
  },
  {
    method: "POST",
    path: "/api/session/logout",
    file: "session/logout",
    access: { table: { sessions: ["GetItem", "DeleteItem"] }, console: "sign-in" },
    public: true,
  },
];
