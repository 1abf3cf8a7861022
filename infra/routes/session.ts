/** The console's sign-in, refresh and sign-out. They need no access token, because the browser uses them to get a session. */
import { namesChange } from "./access.ts";
import { get, post, type Route, type TableAccess } from "./route.ts";

/** The rights to find a user by the subject of a token, and to accept the invitation of a user who signs in for the first time. */
export const signedInUser: TableAccess = {
  ...namesChange,
  identity: ["GetItem", "UpdateItem"],
  reference: ["GetItem", "UpdateItem"],
  email: ["UpdateItem"],
};

export const sessionRoutes: readonly Route[] = [
  get("/api/session/login", "session/login", { console: "sign-in", public: true }),
  get("/api/session/callback", "session/callback", {
    table: { ...signedInUser, sessions: ["PutItem", "DeleteItem"], sessionDataKeys: ["GetItem", "PutItem"] },
    issuer: "verify",
    console: "sign-in",
    sessionTokens: "make",
    public: true,
  }),
  post("/api/session/refresh", "session/refresh", {
    table: {
      identity: ["GetItem"],
      sessions: ["GetItem", "PutItem", "UpdateItem", "DeleteItem"],
      sessionDataKeys: ["GetItem"],
    },
    issuer: "verify",
    console: "sign-in",
    sessionTokens: "open",
    public: true,
  }),
  post("/api/session/logout", "session/logout", {
    table: { sessions: ["GetItem", "DeleteItem"] },
    console: "sign-in",
    public: true,
  }),
];
