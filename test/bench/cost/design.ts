/** The settings of the deployment that change costs and latencies. Their values come from the files from which the templates are made. */

import { cacheBytesOf } from "#shared/company-index/read/company-index.ts";
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { capacityOf, FLUSH_WINDOW_SECONDS, MEMORY_MB, type Preset } from "../../../infra/settings/capacity.ts";

export interface Design {
  readonly memoryMb: (file: string) => number;
  readonly cacheBytes: (memoryMb: number) => number;
  /** Number of environments that are always ready, by the file of their function. */
  readonly provisioned: Readonly<Partial<Record<string, number>>>;
  /** The number of writes to a company that start a flush of its index. */
  readonly flushEntries: number;
  /** The seconds for which Lambda collects writes before it starts the function that flushes. */
  readonly flushWindowSeconds: number;
  /** Whether clients send `If-None-Match`, and the service answers 304. */
  readonly revalidates: boolean;
  /** Whether functions keep the prospects of recent lists in memory. */
  readonly keepsRows: boolean;
  /** The minutes between two runs of the scheduled smoke test, which calls functions and so keeps their environments alive. */
  readonly smokeTestMinutes?: number;
  /** Whether a provisioned environment loads the index of each company at its start, before the first request. */
  readonly loadsAtStart?: boolean;
}

export function designOf(preset: Preset): Design {
  const { memoryMb, provisioned } = capacityOf({ preset });
  return {
    memoryMb: (file) => memoryMb[file] ?? MEMORY_MB,
    cacheBytes: cacheBytesOf,
    provisioned,
    flushEntries: FLUSH_ENTRIES,
    flushWindowSeconds: FLUSH_WINDOW_SECONDS,
    revalidates: true,
    keepsRows: true,
  };
}
