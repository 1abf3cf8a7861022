/** Everything that names things in a company: its statuses, tags and users, read by one Query. */
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredStatus } from "#shared/statuses/schema.ts";
import { StoredTag } from "#shared/tags/schema.ts";
import { StoredUser } from "#shared/users/schema.ts";

export interface Dictionary {
  readonly statuses: ReadonlyMap<number, StoredStatus>;
  readonly tags: ReadonlyMap<number, StoredTag>;
  readonly users: ReadonlyMap<number, StoredUser>;
}

export async function loadDictionary(table: Table, companyId: number): Promise<Dictionary> {
  const statuses = new Map<number, StoredStatus>();
  const tags = new Map<number, StoredTag>();
  const users = new Map<number, StoredUser>();
  for await (const item of table.query(keys.reference(companyId))) {
    if (item.type === "status") keep(statuses, StoredStatus.parse(item));
    else if (item.type === "tag") keep(tags, StoredTag.parse(item));
    else if (item.type === "user") keep(users, StoredUser.parse(item));
  }
  return { statuses, tags, users };
}

function keep<T extends { id: number }>(into: Map<number, T>, entry: T): void {
  into.set(entry.id, entry);
}

/** Display values match without case and outer blanks. */
export const folded = (value: string): string => value.trim().toLowerCase();
