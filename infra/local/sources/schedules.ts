/** Invokes functions at the rates of the template's rules, and also at the start, so that the sweeper finds interrupted work. */
import { setTimeout as wait } from "node:timers/promises";
import { messageOf } from "../../cli/command/error.ts";
import type { LocalFunction } from "../runtime/function.ts";
import { LocalError } from "../servers/error.ts";
import { nameOfArn } from "../template/names.ts";
import type { Stack } from "../template/stack.ts";
import type { RunningSource } from "./poller.ts";

interface Schedules {
  readonly stack: Pick<Stack, "rules">;
  readonly functions: ReadonlyMap<string, LocalFunction>;
  /** True if the queues were created at this start. An older table may then have rows whose queue messages no longer exist. */
  readonly areMessagesLost: boolean;
  readonly log: (text: string) => void;
}

const MINUTE_MS = 60_000;
const RATE = /^rate\((\d+) minutes?\)$/;
/** Lambda's retries of an asynchronous invocation: the first after one minute, the second two minutes after the first. */
const RETRIES = 2;
const RETRY_MS = 60_000;

/** Starts the schedules. If the queues are new, the first event lets the sweeper send a queue message for every waiting delivery. */
export function startSchedules(schedules: Schedules): RunningSource {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  const fire = (target: LocalFunction, event: unknown): void => {
    const work = invokeAsynchronously(schedules, target, event, stopping.signal).finally(() => running.delete(work));
    running.add(work);
  };
  const timers = rules(schedules).map(({ target, input, everyMs }) => {
    fire(target, schedules.areMessagesLost ? withLostMessages(input) : JSON.parse(input));
    return setInterval(() => fire(target, JSON.parse(input)), everyMs);
  });
  return {
    kick: () => undefined,
    async stop() {
      stopping.abort();
      for (const timer of timers) clearInterval(timer);
      await Promise.all(running);
    },
  };
}

function rules({ stack, functions }: Schedules): { target: LocalFunction; input: string; everyMs: number }[] {
  return stack.rules.flatMap(({ id, ScheduleExpression, Targets }) => {
    const minutes = RATE.exec(ScheduleExpression)?.[1];
    if (minutes === undefined)
      throw new LocalError(`${id}.ScheduleExpression: the local runtime supports only rates in minutes`);
    const everyMs = Number(minutes) * MINUTE_MS;
    return Targets.map(({ Arn, Input = "{}" }) => {
      const target = functions.get(nameOfArn(Arn));
      if (target === undefined)
        throw new LocalError(`${id}.Targets: the local runtime supports only functions of the template`);
      return { target, input: Input, everyMs };
    });
  });
}

function withLostMessages(input: string): unknown {
  const event: unknown = JSON.parse(input);
  const isSweep = typeof event === "object" && event !== null && "assume" in event && event.assume === "messages-kept";
  return isSweep ? { ...event, assume: "messages-lost" } : event;
}

async function invokeAsynchronously(
  { log }: Schedules,
  target: LocalFunction,
  event: unknown,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 0; attempt <= RETRIES && !signal.aborted; attempt++) {
    try {
      await wait(attempt * RETRY_MS, undefined, { signal });
      await target.invoke(event);
      return;
    } catch (error) {
      if (!signal.aborted) log(`${target.spec.name}: asynchronous invocation failed: ${messageOf(error)}\n`);
    }
  }
}
