/** The results of a bulk job. The bucket has one file for each chunk of records. */
import * as z from "zod/mini";
import type { Objects } from "#shared/aws/s3.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { StoredResult } from "#shared/jobs/bulk/stored.ts";
import { bulkKeys } from "#shared/jobs/s3-keys.ts";

interface Job {
  readonly companyId: number;
  readonly id: number;
}

/** Stores the results of a chunk. Storing them again replaces them. */
export const storeResults = (
  objects: Objects,
  { companyId, id }: Job,
  chunk: number,
  results: readonly StoredResult[],
): Promise<void> => objects.put(bulkKeys.results(companyId, id, chunk), packed(results), "application/octet-stream");

export const readResults = async (objects: Objects, { companyId, id }: Job, chunk: number): Promise<StoredResult[]> =>
  unpacked(z.array(StoredResult), await objects.get(bulkKeys.results(companyId, id, chunk)));
