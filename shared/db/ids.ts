/** Ids that are unique across the whole service. Functions lease blocks of ids from one counter, so a create needs no write for its id. */
import * as z from "zod/mini";
import { IDS_PER_PARTITION, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface Ids {
  /** A new id for a record that is neither a prospect nor an address. */
  next(): Promise<number>;
  /** A new id for a prospect of this company. Its block holds no prospects of another company. */
  nextProspect(companyId: number): Promise<number>;
  /** A new id for an address of this company. Its block holds no addresses of another company. */
  nextAddress(companyId: number): Promise<number>;
  /** `count` prospect ids in ascending order, from whole blocks. */
  takeProspects(companyId: number, count: number): Promise<number[]>;
  /** The first of `count` consecutive ids, in whole blocks. The range carries the import's id until the import is published. */
  takeForImport(kind: Kind, companyId: number, count: number, importId: string): Promise<number>;
  /** The first of `count` consecutive ids for other records, in whole blocks. */
  take(count: number): Promise<number>;
}

interface Lease {
  next: number;
  readonly end: number;
}

const Counter = z.object({ nextBlock: z.int() });

/** The kinds with id blocks of the company's own. Its ranges list their partitions. */
const rangeKeys = { prospect: keys.prospectRange, address: keys.addressRange } as const;
export type Kind = keyof typeof rangeKeys;

export function leaseIds(table: Table): Ids {
  /** The first of `blocks` new blocks. The counter only grows, so a lost reply leaves a gap and never repeats an id. */
  async function leaseBlocks(blocks: number): Promise<number> {
    const counter = await table.write({ update: keys.idCounter(), change: { add: { nextBlock: blocks } } });
    return Counter.parse(counter).nextBlock - blocks + 1;
  }

  async function leaseGeneral(): Promise<Lease> {
    const first = await leaseBlocks(1);
    return { next: first * IDS_PER_PARTITION, end: (first + 1) * IDS_PER_PARTITION };
  }

  /** Writes the company's range before the first use of its ids, so that the ranges cover every prospect. */
  async function leaseForCompany(kind: Kind, companyId: number, blocks: number, importId?: string): Promise<Lease> {
    const first = await leaseBlocks(blocks);
    const range = { from: first, to: first + blocks - 1, ...(importId !== undefined && { importId }) };
    await table.write({ put: { ...rangeKeys[kind](companyId, first), type: `${kind}Range`, ...range } });
    return { next: first * IDS_PER_PARTITION, end: (first + blocks) * IDS_PER_PARTITION };
  }

  const general = pool(leaseGeneral);
  const byCompany = { prospect: new Map<number, Pool>(), address: new Map<number, Pool>() };

  function ofCompany(kind: Kind, companyId: number): Pool {
    const known = byCompany[kind].get(companyId) ?? pool(() => leaseForCompany(kind, companyId, 1));
    byCompany[kind].set(companyId, known);
    return known;
  }

  return {
    next: () => general.take(),
    nextProspect: (companyId) => ofCompany("prospect", companyId).take(),
    nextAddress: (companyId) => ofCompany("address", companyId).take(),
    takeProspects: async (companyId, count) => {
      const { next } = await leaseForCompany("prospect", companyId, Math.ceil(count / IDS_PER_PARTITION));
      return Array.from({ length: count }, (_, i) => next + i);
    },
    takeForImport: async (kind, companyId, count, importId) =>
      (await leaseForCompany(kind, companyId, Math.ceil(count / IDS_PER_PARTITION), importId)).next,
    take: async (count) => (await leaseBlocks(Math.ceil(count / IDS_PER_PARTITION))) * IDS_PER_PARTITION,
  };
}

interface Pool {
  take(): Promise<number>;
}

/** Gives out the ids of one lease, then renews it. Concurrent callers share one renewal. */
function pool(renew: () => Promise<Lease>): Pool {
  let current: Promise<Lease> | undefined;

  async function take(): Promise<number> {
    current ??= renew();
    const mine = current;
    const lease = await mine.catch((error: unknown) => {
      if (current === mine) current = undefined;
      throw error;
    });
    if (lease.next < lease.end) return lease.next++;
    if (current === mine) current = undefined;
    return take();
  }

  return { take };
}
