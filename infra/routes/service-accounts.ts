/** Lists the routes of service accounts and their keys. */
import { currentDictionary, named, namesChange, newIds } from "./access.ts";
import { get, patch, post, type Route, remove, type TableAccess } from "./route.ts";

const accounts = "/api/service-accounts";
const keys = `${accounts}/{id}/keys`;

const accountWrites: TableAccess = {
  ...namesChange,
  reference: ["GetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem"],
};

/** The rights to change the keys of an account. */
const takeOver: TableAccess = {
  reference: ["GetItem", "ConditionCheckItem"],
  keyRings: ["GetItem", "UpdateItem"],
};
/** If a key makes the request, the key ring of this key is checked too. */
const keyWrites: TableAccess = { ...takeOver, keyRings: ["GetItem", "UpdateItem", "ConditionCheckItem"] };
/** A request that lowers the rights of a user also changes the keys that this user has created. */
const createdKeys: TableAccess = {
  keyRings: ["GetItem", "BatchGetItem", "UpdateItem", "ConditionCheckItem"],
};
/** The rights to wait for a running job of the account, which must read the account's new rights. */
const runningJob: TableAccess = { bulkQueues: ["GetItem"], bulkJobs: ["GetItem"] };

export const serviceAccountRoutes: readonly Route[] = [
  get(accounts, "service-accounts/list", { table: { reference: ["Query"] } }),
  post(accounts, "service-accounts/create", {
    table: {
      ...accountWrites,
      ...newIds,
      reference: ["Query", "PutItem", "UpdateItem", "ConditionCheckItem"],
      keyRings: ["GetItem", "PutItem", "ConditionCheckItem"],
    },
  }),
  get(`${accounts}/{id}`, "service-accounts/get", { table: named }),
  patch(`${accounts}/{id}`, "service-accounts/update", { table: { ...accountWrites, ...createdKeys, ...runningJob } }),
  remove(`${accounts}/{id}`, "service-accounts/delete", { table: { ...accountWrites, ...createdKeys, ...runningJob } }),
  get(keys, "api-keys/list", { table: { ...currentDictionary, keyRings: ["GetItem"] } }),
  post(keys, "api-keys/create", {
    table: { ...keyWrites, dataKeys: ["GetItem", "PutItem"] },
    secrets: "make",
  }),
  post(`${keys}/{keyId}/rotate`, "api-keys/rotate", {
    table: { ...keyWrites, dataKeys: ["GetItem", "PutItem"] },
    secrets: "make",
  }),
  post(`${keys}/{keyId}/take-over`, "api-keys/take-over", { table: takeOver }),
  remove(`${keys}/{keyId}`, "api-keys/revoke", { table: keyWrites }),
];
