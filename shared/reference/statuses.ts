/** Reads and writes the lead statuses of a company. No two of them have the same value, ignoring case. */
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { creationOf, loadDictionary, namesChangeAfter } from "#shared/reference/dictionary.ts";
import { newValuedRow, valuedRowChange } from "#shared/reference/display-value.ts";
import type { NewStatus, StatusPatch } from "#shared/reference/input.ts";
import { DEFAULT_COLOR, StoredStatus } from "#shared/reference/schema.ts";

export async function listStatuses({ table }: ApiContext, companyId: number): Promise<StoredStatus[]> {
  const { statuses } = await loadDictionary(table, companyId);
  return [...statuses.values()].sort((a, b) => a.sortOrder - b.sortOrder || a.id - b.id);
}

export async function getStatus({ table }: ApiContext, companyId: number, id: number): Promise<StoredStatus> {
  const item = await table.get(keys.status(companyId, id));
  if (item === undefined) throw notFound("status");
  return StoredStatus.parse(item);
}

export async function createStatus(
  context: ApiContext,
  companyId: number,
  input: NewStatus,
): Promise<Plan<StoredStatus>> {
  const [id, dictionary] = await Promise.all([context.ids.next(), loadDictionary(context.table, companyId)]);
  if (dictionary.statuses.size >= limits.statusesPerCompany) {
    throw new ApiError(
      "conflict",
      `A company may have at most ${limits.statusesPerCompany} statuses, active or not. Rename one that is not active, and activate it again.`,
    );
  }
  const now = iso(context.clock.now());
  const last = Math.max(0, ...[...dictionary.statuses.values()].map(({ sortOrder }) => sortOrder));
  const { value, color = DEFAULT_COLOR, sortOrder = last + 1 } = input;
  const dates = { createdAt: now, updatedAt: now };
  const status: StoredStatus = { type: "status", id, value, color, sortOrder, isActive: true, version: 1, ...dates };
  const names = namesChangeAfter(dictionary, companyId, creationOf(status));
  return { writes: [...names, ...newStatusWrites(companyId, status)], answer: status };
}

export const newStatusWrites = (companyId: number, status: StoredStatus): Write[] =>
  newValuedRow(companyId, "STATUS", { ...keys.status(companyId, status.id), ...status });

/** Writes nothing if all values are the same as before. */
export async function updateStatus(
  context: ApiContext,
  companyId: number,
  id: number,
  patch: StatusPatch,
): Promise<Plan<StoredStatus>> {
  return statusChange(companyId, await getStatus(context, companyId, id), patch, context.clock.now());
}

/** Prospects keep it, but it can no longer be assigned. Throws `not_found` if it is already inactive. */
export async function deactivateStatus(
  context: ApiContext,
  companyId: number,
  id: number,
): Promise<Plan<StoredStatus>> {
  const current = await getStatus(context, companyId, id);
  if (!current.isActive) throw notFound("status");
  return statusChange(companyId, current, { isActive: false }, context.clock.now());
}

function statusChange(companyId: number, current: StoredStatus, patch: StatusPatch, nowMs: number): Plan<StoredStatus> {
  const next: StoredStatus = {
    ...current,
    value: patch.value ?? current.value,
    color: patch.color ?? current.color,
    sortOrder: patch.sortOrder ?? current.sortOrder,
    isActive: patch.isActive ?? current.isActive,
  };
  if (sameStatus(current, next)) return unchanged(current);
  return valuedRowChange(companyId, "STATUS", current, { ...next, updatedAt: iso(nowMs) });
}

function sameStatus(a: StoredStatus, b: StoredStatus): boolean {
  return a.value === b.value && a.color === b.color && a.sortOrder === b.sortOrder && a.isActive === b.isActive;
}
