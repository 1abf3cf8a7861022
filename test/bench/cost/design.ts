/** The settings of a deployment that change its costs and latencies. They are read from the same files as the templates of the stacks. */

import { cacheBytesOf } from "#shared/company-index/read/company-index.ts";
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { capacityOf, FLUSH_WINDOW_SECONDS, MEMORY_MB, type Preset } from "../../../infra/settings/capacity.ts";

export interface Design {
  /** The preset decides which parts a deployment has by default: backups, the web ACL and the scheduled smoke test. */
  readonly preset: Preset;
  readonly memoryMb: (file: string) => number;
  readonly cacheBytes: (memoryMb: number) => number;
  /** Number of environments with provisioned concurrency, by the file of the function. These environments are always ready. */
  readonly provisioned: Readonly<Partial<Record<string, number>>>;
  /** Number of writes to a company after which a background function (flush) adds them to the company's stored search index. */
  readonly flushEntries: number;
  /** Seconds for which Lambda collects writes before it starts the flush function. */
  readonly flushWindowSeconds: number;
  /** Whether clients send `If-None-Match`, and the service answers 304. */
  readonly revalidates: boolean;
  /** Whether functions keep the prospects of recent lists in memory. */
  readonly keepsRows: boolean;
  /**
   * The minutes between two runs of the scheduled smoke test. It calls functions, which keeps their environments alive. Undefined if there
   * is no smoke test.
   */
  readonly smokeTestMinutes?: number;
  /** Whether a provisioned environment loads the index of each company at its start, before the first request. */
  readonly loadsAtStart?: boolean;
}

export function designOf(preset: Preset): Design {
  const { memoryMb, provisioned } = capacityOf({ preset });
  return {
    preset,
    memoryMb: (file) => memoryMb[file] ?? MEMORY_MB,
    cacheBytes: cacheBytesOf,
    provisioned,
    flushEntries: FLUSH_ENTRIES,
    flushWindowSeconds: FLUSH_WINDOW_SECONDS,
    revalidates: true,
    keepsRows: true,
  };
}
