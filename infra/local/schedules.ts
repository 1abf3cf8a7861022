/** Rules that invoke a function at a fixed rate, with Lambda's rules for asynchronous invocations. */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { LocalError, messageOf } from "./error.ts";
import type { LocalFunction } from "./function.ts";
import { functionArn, nameOfArn } from "./names.ts";
import type { RunningSource } from "./sources.ts";
import type { Stack } from "./stack.ts";

export interface Schedules {
  readonly stack: Stack;
  readonly functions: ReadonlyMap<string, LocalFunction>;
  readonly sendTo: (queueArn: string, body: object) => Promise<void>;
  readonly log: (text: string) => void;
}

const unitMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
/** Lambda repeats a failed asynchronous invocation twice, after one and after two minutes. */
const DEFAULT_RETRIES = 2;
const RETRY_MS = 60_000;

/**
 * Every rule also fires once at the start. The queues are then empty, whatever was in them before: a rule whose input
 * assumes that messages were kept is told that they were lost, as an operator does after a purge.
 */
export function startSchedules(schedules: Schedules): RunningSource {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  const fire = (target: LocalFunction, event: unknown): void => {
    const work = invokeAsynchronously(schedules, target, event, stopping.signal).finally(() => running.delete(work));
    running.add(work);
  };
  const timers = rules(schedules).map(({ target, input, everyMs }) => {
    fire(target, atStart(input));
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
  return stack.rules.flatMap(({ id, ScheduleExpression, State, Targets }) => {
    const [, count, unit] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(ScheduleExpression) ?? [];
    if (unit === undefined) throw new LocalError(`${id}.ScheduleExpression: only rate(...) is supported locally`);
    if (State === "DISABLED") return [];
    const everyMs = Number(count) * (unitMs[unit] ?? Number.NaN);
    return Targets.map(({ Arn, Input = "{}" }) => {
      const target = functions.get(nameOfArn(Arn));
      if (target === undefined)
        throw new LocalError(`${id}.Targets: only functions of the template are supported locally`);
      return { target, input: Input, everyMs };
    });
  });
}

function atStart(input: string): unknown {
  const event: unknown = JSON.parse(input);
  const kept = typeof event === "object" && event !== null && "assume" in event && event.assume === "messages-kept";
  return kept ? { ...event, assume: "messages-lost" } : event;
}

async function invokeAsynchronously(
  { stack, sendTo, log }: Schedules,
  target: LocalFunction,
  event: unknown,
  signal: AbortSignal,
): Promise<void> {
  const { name, DeadLetterConfig } = target.spec;
  const config = stack.invokeConfigs.find(({ FunctionName }) => nameOfArn(FunctionName) === name);
  const retries = config?.MaximumRetryAttempts ?? DEFAULT_RETRIES;
  for (let failures = 0; ; ) {
    try {
      await target.invoke(event);
      return;
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      log(`${name}: asynchronous invocation failed (${failures}): ${messageOf(error)}\n`);
      if (failures > retries) {
        if (DeadLetterConfig !== undefined) await sendTo(DeadLetterConfig.TargetArn, Object(event));
        const destination = config?.DestinationConfig?.OnFailure.Destination;
        if (destination !== undefined) await sendTo(destination, failureRecord(name, event, failures));
        return;
      }
      await wait(failures * RETRY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }
}

const failureRecord = (name: string, event: unknown, invocations: number): object => ({
  version: "1.0",
  timestamp: new Date().toISOString(),
  requestContext: {
    requestId: randomUUID(),
    functionArn: functionArn(name),
    condition: "RetriesExhausted",
    approximateInvokeCount: invocations,
  },
  requestPayload: event,
  responseContext: { statusCode: 200, executedVersion: "$LATEST", functionError: "Unhandled" },
});
