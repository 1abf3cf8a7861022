/**
 * Reads the table's stream and flushes the company index, which is the service's own search index: recent changes move into sorted
 * segments.
 */
import { flushStream } from "#shared/company-index/write/flush.ts";
import { apiContext } from "#shared/context.ts";

export const handler = flushStream(apiContext);
