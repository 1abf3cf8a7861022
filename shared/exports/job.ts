/** One run of the work on an export into a file. */
import type { JobWorld } from "#shared/jobs/world.ts";

export async function runExport(
  _world: JobWorld,
  _place: { companyId: number; id: number },
  _remainingMs: () => number,
): Promise<void> {}
