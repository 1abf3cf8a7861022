/** Makes ids that are unique in the whole service. A function reserves blocks of 128, so most records need no write for their ids. */
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface Ids {
  /** Returns an id for a record that is neither a prospect nor an address. */
  next(): Promise<number>;
  /** Returns an id for a prospect. A block of 128 ids of prospects belongs to one company. The same is true for ids of addresses. */
  nextProspect(companyId: number): Promise<number>;
  nextAddress(companyId: number): Promise<number>;
  /** Reserves new blocks and returns `count` of their ids in ascending order. */
  takeProspects(companyId: number, count: number): Promise<number[]>;
  /** Returns the first of `count` consecutive ids in new blocks. Readers skip the range while its row has `importId`. */
  takeForImport(kind: Kind, companyId: number, count: number, importId: string): Promise<number>;
  /** Reserves blocks for records that are neither prospects nor addresses. Returns the first of `count` consecutive ids. */
  take(count: number): Promise<number>;
}

interface Lease {
  next: number;
  readonly end: number;
}

const Counter = z.object({ nextBlock: z.int() });

/** A company has separate blocks for each of these kinds. One row for each range of blocks tells readers which partitions to read. */
const rangeKeys = { prospect: keys.prospectRange, address: keys.addressRange } as const;
export type Kind = keyof typeof rangeKeys;

export function leaseIds(table: Table): Ids {
  /** Reserves blocks and returns the number of the first one. If the response is lost, the blocks stay unused, so no id is used twice. */
  async function leaseBlocks(blocks: number): Promise<number> {
    const counter = await table.write({ update: keys.idCounter(), change: { add: { nextBlock: blocks } } });
    return Counter.parse(counter).nextBlock - blocks + 1;
  }

  async function leaseGeneral(): Promise<Lease> {
    const first = await leaseBlocks(1);
    return { next: first * IDS_PER_PARTITION, end: (first + 1) * IDS_PER_PARTITION };
  }

  /** Reserves blocks for a company. Writes a row with their range before an id is used, so readers of these rows find every record. */
  async function leaseForCompany(kind: Kind, companyId: number, blocks: number, importId?: string): Promise<Lease> {
    const first = await leaseBlocks(blocks);
    const range = { from: first, to: first + blocks - 1, ...(importId !== undefined && { importId }) };
    await table.write({ put: { ...rangeKeys[kind](companyId, first), type: `${kind}Range`, ...range } });
    return { next: first * IDS_PER_PARTITION, end: (first + blocks) * IDS_PER_PARTITION };
  }

  const general = pool(leaseGeneral);
  const byCompany = { prospect: new Map<number, Pool>(), address: new Map<number, Pool>() };

  function nextOf(kind: Kind, companyId: number): Promise<number> {
    const known = byCompany[kind].get(companyId) ?? pool(() => leaseForCompany(kind, companyId, 1));
    byCompany[kind].set(companyId, known);
    return known();
  }

  return {
    next: general,
    nextProspect: (companyId) => nextOf("prospect", companyId),
    nextAddress: (companyId) => nextOf("address", companyId),
    takeProspects: async (companyId, count) => {
      const { next } = await leaseForCompany("prospect", companyId, Math.ceil(count / IDS_PER_PARTITION));
      return Array.from({ length: count }, (_, i) => next + i);
    },
    takeForImport: async (kind, companyId, count, importId) =>
      (await leaseForCompany(kind, companyId, Math.ceil(count / IDS_PER_PARTITION), importId)).next,
    take: async (count) => (await leaseBlocks(Math.ceil(count / IDS_PER_PARTITION))) * IDS_PER_PARTITION,
  };
}

type Pool = () => Promise<number>;

/** Returns a function that gives one id in each call, and calls `renew` for new ids when none are left. Concurrent calls share the ids. */
function pool(renew: () => Promise<Lease>): Pool {
  let current: Promise<Lease> | undefined;

  return async function take(): Promise<number> {
    current ??= renew();
    const mine = current;
    const lease = await mine.catch((error: unknown) => {
      if (current === mine) current = undefined;
      throw error;
    });
    if (lease.next < lease.end) return lease.next++;
    if (current === mine) current = undefined;
    return take();
  };
}
