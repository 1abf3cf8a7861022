/** Lists the routes of users, statuses and tags. */
import { dictionary, named, namesChange, newIds, runningJob } from "./access.ts";
import { get, patch, post, type Route, remove, type TableAccess } from "./route.ts";

/** The rights to create a status or tag. They include the right to write the row that keeps the status's or tag's text unique. */
const newValue: TableAccess = {
  ...newIds,
  ...namesChange,
  reference: ["Query", "PutItem", "UpdateItem"],
};
/** The rights to change a status or tag. If its text changes, the row that keeps the text unique is replaced. */
const valueWrites: TableAccess = {
  ...namesChange,
  reference: ["GetItem", "PutItem", "UpdateItem", "DeleteItem"],
};
const userWrites: TableAccess = {
  ...namesChange,
  reference: ["GetItem", "PutItem", "UpdateItem", "ConditionCheckItem"],
};
/** The rights to invite a user. An invitation claims the e-mail address and counts toward a daily limit. */
const invitationWrites: TableAccess = { ...userWrites, email: ["GetItem", "PutItem"], quotas: ["UpdateItem"] };

export const referenceRoutes: readonly Route[] = [
  get("/api/users", "users/list", { table: dictionary, streamed: true }),
  post("/api/users", "users/create", {
    table: { ...invitationWrites, ...newIds, identity: ["PutItem"], keyRings: ["GetItem", "ConditionCheckItem"] },
    identityProvider: "invite",
  }),
  get("/api/users/{id}", "users/get", { table: named }),
  patch("/api/users/{id}", "users/update", {
    table: {
      ...invitationWrites,
      ...runningJob,
      reference: ["GetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem"],
      identity: ["PutItem", "UpdateItem"],
      keyRings: ["GetItem", "BatchGetItem", "UpdateItem", "ConditionCheckItem"],
    },
    identityProvider: "invite",
  }),
  remove("/api/users/{id}", "users/delete", {
    table: {
      ...userWrites,
      ...runningJob,
      reference: ["GetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem"],
      identity: ["UpdateItem", "DeleteItem"],
      keyRings: ["GetItem", "BatchGetItem", "UpdateItem", "ConditionCheckItem"],
      email: ["GetItem", "DeleteItem"],
    },
    identityProvider: "withdraw",
  }),

  get("/api/statuses", "statuses/list", { table: dictionary }),
  post("/api/statuses", "statuses/create", { table: newValue }),
  get("/api/statuses/{id}", "statuses/get", { table: named }),
  patch("/api/statuses/{id}", "statuses/update", { table: valueWrites }),
  // A deleted status keeps its text. So the row that keeps the text unique is not deleted, and the right DeleteItem is not needed.
  remove("/api/statuses/{id}", "statuses/delete", {
    table: { ...valueWrites, reference: ["GetItem", "PutItem", "UpdateItem"] },
  }),

  get("/api/tags", "tags/list", { table: dictionary }),
  post("/api/tags", "tags/create", { table: newValue }),
  get("/api/tags/{id}", "tags/get", { table: named }),
  patch("/api/tags/{id}", "tags/update", { table: valueWrites }),
  remove("/api/tags/{id}", "tags/delete", {
    table: { ...namesChange, reference: ["GetItem", "UpdateItem", "DeleteItem"] },
  }),
];
