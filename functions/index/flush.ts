/** The table's stream -> the company index: unflushed entries become segments. */
import { flushStream } from "#shared/company-index/flush-stream.ts";
import { world } from "#shared/world.ts";

export const handler = flushStream(world);
