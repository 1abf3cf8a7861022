/**
 * Polls the events of an event source, and passes them to a function in batches. The drivers of queues and of streams say how events are
 * fetched, and what happens to processed and to failed events.
 */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { messageOf } from "../../cli/command/error.ts";

export interface RunningSource {
  /** Ends the current wait, so that the source looks for new events immediately. */
  kick(): void;
  /** Stops the source, and resolves when no invocation is running any more. Unprocessed events remain in the queue or stream. */
  stop(): Promise<void>;
}

export interface Driver<Batch> {
  /** The logical id of the event source, for the log. */
  readonly id: string;
  readonly concurrency: number;
  /** If true, the poller fetches further events while batches are processed. */
  readonly fetchesAhead: boolean;
  /** Fetches events. Resolves with false if there are none, so that the poller waits before the next call. */
  fetch(signal: AbortSignal): Promise<boolean>;
  take(): Batch | undefined;
  /** Invokes the function and settles the events. The events of a batch that fails remain in the queue or stream. */
  process(batch: Batch, signal: AbortSignal): Promise<void>;
}

/** Maximum wait after a poll that found no events. The end of any invocation ends the wait, because the function may have written rows. */
const POLL_MS = 250;
/** Minimum wait after a poll that found no events, because a poll uses as much processor time as a small request. */
const POLL_GAP_MS = 100;

export function startPoller<Batch>(driver: Driver<Batch>, log: (text: string) => void): RunningSource {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = new Set<Promise<void>>();
  let kicked = Promise.withResolvers<void>();
  let isFailing = false;
  const failed = (what: string, error: unknown): void => {
    isFailing = true;
    if (!signal.aborted) log(`${driver.id}: ${what}: ${messageOf(error)}\n`);
  };

  function startBatches(): void {
    while (!signal.aborted && running.size < driver.concurrency) {
      const batch = driver.take();
      if (batch === undefined) return;
      const work = driver
        .process(batch, signal)
        .catch((error: unknown) => failed("a batch failed and will come back", error))
        .finally(() => {
          running.delete(work);
          startBatches();
        });
      running.add(work);
    }
  }

  async function poll(): Promise<void> {
    kicked = Promise.withResolvers();
    isFailing = false;
    let found = false;
    try {
      found = await driver.fetch(signal);
    } catch (error) {
      failed("the source cannot be read", error);
    }
    startBatches();
    while (!driver.fetchesAhead && running.size > 0) await Promise.all(running);
    if ((!found || isFailing) && !signal.aborted) await idle(kicked.promise);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) await poll();
    await Promise.all(running);
  }

  const ended = run();
  return {
    kick: () => kicked.resolve(),
    async stop() {
      stopping.abort();
      kicked.resolve();
      await ended;
    },
  };
}

const idle = (kicked: Promise<void>): Promise<unknown> =>
  Promise.all([Promise.race([kicked, wait(POLL_MS)]), wait(POLL_GAP_MS)]);

const Report = z.nullish(
  z.looseObject({ batchItemFailures: z.nullish(z.array(z.object({ itemIdentifier: z.string() }))) }),
);

/** Returns the failed ids in a function's report, or `"all"`, as in Lambda, if the report is malformed or has an unknown id. */
export function failedItems(payload: string, known: ReadonlySet<string>): ReadonlySet<string> | "all" {
  const parsed = z.safeParse(Report, JSON.parse(payload));
  if (!parsed.success) return "all";
  const failed = new Set((parsed.data?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier));
  return [...failed].every((identifier) => known.has(identifier)) ? failed : "all";
}
