/** Everything that names things in a company: its statuses, tags and users, read by one Query. */

import { StoredUser } from "#shared/auth/user-schema.ts";
import { namesChangeInHead } from "#shared/company-index/head.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredCompany } from "#shared/reference/company-schema.ts";
import { StoredStatus } from "#shared/reference/status-schema.ts";
import { StoredTag } from "#shared/reference/tag-schema.ts";

export interface Dictionary {
  /** Counts the changes of the names; these are of this version or a newer one. */
  readonly version: number;
  readonly statuses: ReadonlyMap<number, StoredStatus>;
  readonly tags: ReadonlyMap<number, StoredTag>;
  readonly users: ReadonlyMap<number, StoredUser>;
}

/** The company's row is the first in the order of keys: what is read after it is no older than the version that it tells. */
export async function loadDictionary(table: Table, companyId: number): Promise<Dictionary> {
  const statuses = new Map<number, StoredStatus>();
  const tags = new Map<number, StoredTag>();
  const users = new Map<number, StoredUser>();
  let version = 0;
  for await (const item of table.query(keys.reference(companyId))) {
    if (item.type === "company") version = StoredCompany.parse(item).dictionaryVersion ?? 0;
    else if (item.type === "status") keep(statuses, StoredStatus.parse(item));
    else if (item.type === "tag") keep(tags, StoredTag.parse(item));
    else if (item.type === "user") keep(users, StoredUser.parse(item));
  }
  return { version, statuses, tags, users };
}

/** Goes into the transaction of every write of a status, tag or user, so that nobody keeps a name that has changed. */
export const namesChange = (companyId: number): Write[] => [
  { update: keys.company(companyId), change: { add: { dictionaryVersion: 1 } } },
  namesChangeInHead(companyId),
];

function keep<T extends { id: number }>(into: Map<number, T>, entry: T): void {
  into.set(entry.id, entry);
}
