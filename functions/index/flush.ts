/**
 * Merges recent changes into the company index (the search index of a company), so that reads of the index stay fast. The table's stream
 * triggers the function.
 */
import { flushStream } from "#shared/company-index/write/flush-stream.ts";
import { apiContext } from "#shared/context.ts";

export const handler = flushStream(apiContext);
