/**
 * Keeps the company index (the search index of a company) fast to read. Reads the table's stream, and moves recent changes into the
 * stored index.
 */
import { flushStream } from "#shared/company-index/write/flush.ts";
import { apiContext } from "#shared/context.ts";

export const handler = flushStream(apiContext);
