/** How a change arrives: online, or later from a device that was offline. */
import { Outdated } from "#shared/errors.ts";
import { rowVersionOf } from "#shared/prospects/record-version.ts";

export interface Arrival {
  /** The time of the change on the device. It is neither in the future nor too old. */
  readonly occurredAt?: string | undefined;
  /** The version that the user changed. If the record has another version now, nothing is written. */
  readonly baseVersion?: number | undefined;
}

interface Versioned {
  readonly id: number;
  readonly version: number;
}

/** Throws `Outdated` with the current record. */
export async function requireBase({ baseVersion }: Arrival, current: Versioned, present: () => unknown): Promise<void> {
  if (baseVersion === undefined || rowVersionOf(baseVersion) === current.version) return;
  throw new Outdated(current, await present());
}
