/** Flushes the company index, so that reads of it stay fast. The table's stream triggers the function. */
import { flushStream } from "#shared/company-index/write/flush-stream.ts";
import { apiContext } from "#shared/context.ts";

export const handler = flushStream(apiContext);
