/** Lists the routes of users, statuses and tags. */
import { dictionary, named, namesChange, newIds } from "./access.ts";
import type { Route, TableAccess } from "./route.ts";

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
/**
 * The rights to read the state of the company's running bulk job. A request that changes or deletes a user waits until a running job of
 * this user has read the user's new permissions.
 */
const runningJob: TableAccess = { bulkQueues: ["GetItem"], bulkJobs: ["GetItem"] };
/** The rights to invite a user. An invitation claims the e-mail address and counts toward a daily limit. */
const invitationWrites: TableAccess = { ...userWrites, email: ["GetItem", "PutItem"], quotas: ["UpdateItem"] };

export const referenceRoutes: readonly Route[] = [
  { method: "GET", path: "/api/users", file: "users/list", access: { table: dictionary }, streamed: true },
  {
    method: "POST",
    path: "/api/users",
    file: "users/create",
    access: {
      table: { ...invitationWrites, ...newIds, identity: ["PutItem"] },
      identityProvider: "invite",
    },
  },
  { method: "GET", path: "/api/users/{id}", file: "users/get", access: { table: named } },
  {
    method: "PATCH",
    path: "/api/users/{id}",
    file: "users/update",
    access: {
      table: { ...invitationWrites, ...runningJob, identity: ["PutItem", "UpdateItem"] },
      identityProvider: "invite",
    },
  },
  {
    method: "DELETE",
    path: "/api/users/{id}",
    file: "users/delete",
    access: {
      table: {
        ...userWrites,
        ...runningJob,
        identity: ["UpdateItem", "DeleteItem"],
        email: ["GetItem", "DeleteItem"],
      },
      identityProvider: "withdraw",
    },
  },

  { method: "GET", path: "/api/statuses", file: "statuses/list", access: { table: dictionary } },
  {
    method: "POST",
    path: "/api/statuses",
    file: "statuses/create",
    access: { table: newValue },
  },
  { method: "GET", path: "/api/statuses/{id}", file: "statuses/get", access: { table: named } },
  { method: "PATCH", path: "/api/statuses/{id}", file: "statuses/update", access: { table: valueWrites } },
  {
    method: "DELETE",
    path: "/api/statuses/{id}",
    file: "statuses/delete",
    // A deleted status keeps its text. So the row that keeps the text unique is not deleted, and the right DeleteItem is not needed.
    access: { table: { ...valueWrites, reference: ["GetItem", "PutItem", "UpdateItem"] } },
  },

  { method: "GET", path: "/api/tags", file: "tags/list", access: { table: dictionary } },
  {
    method: "POST",
    path: "/api/tags",
    file: "tags/create",
    access: { table: newValue },
  },
  { method: "GET", path: "/api/tags/{id}", file: "tags/get", access: { table: named } },
  { method: "PATCH", path: "/api/tags/{id}", file: "tags/update", access: { table: valueWrites } },
  {
    method: "DELETE",
    path: "/api/tags/{id}",
    file: "tags/delete",
    access: { table: { ...namesChange, reference: ["GetItem", "UpdateItem", "DeleteItem"] } },
  },
];
