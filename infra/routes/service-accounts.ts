/** Lists the routes of service accounts and their keys. */
import { currentDictionary, named, namesChange, newIds, runningJob } from "./access.ts";
import { get, patch, post, type Route, remove, type TableAccess } from "./route.ts";

const accounts = "/api/service-accounts";
const keys = `${accounts}/{id}/keys`;

const accountWrites: TableAccess = {
  ...namesChange,
  reference: ["GetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem"],
};

const takeOver: TableAccess = {
  reference: ["GetItem", "ConditionCheckItem"],
  keyRings: ["GetItem", "UpdateItem"],
};
/** If the request is made with an API key, its transaction also checks the row with this key. */
const keyWrites: TableAccess = { ...takeOver, keyRings: ["GetItem", "UpdateItem", "ConditionCheckItem"] };
const newKey = { table: { ...keyWrites, dataKeys: ["GetItem", "PutItem"] }, secrets: "make" } as const;
/** A request that lowers the rights of an account also changes the keys that were created with a key of this account. */
const accountChange: TableAccess = {
  ...accountWrites,
  ...runningJob,
  keyRings: ["GetItem", "BatchGetItem", "UpdateItem", "ConditionCheckItem"],
};

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
  patch(`${accounts}/{id}`, "service-accounts/update", { table: accountChange }),
  remove(`${accounts}/{id}`, "service-accounts/delete", { table: accountChange }),
  get(keys, "api-keys/list", { table: { ...currentDictionary, keyRings: ["GetItem"] } }),
  post(keys, "api-keys/create", newKey),
  post(`${keys}/{keyId}/rotate`, "api-keys/rotate", newKey),
  post(`${keys}/{keyId}/take-over`, "api-keys/take-over", { table: takeOver }),
  remove(`${keys}/{keyId}`, "api-keys/revoke", { table: keyWrites }),
];
