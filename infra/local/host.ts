/** Starts the functions, event sources and schedules of the templates. */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { GetRecordsCommand } from "@aws-sdk/client-dynamodb-streams";
import { messageOf } from "../command/error.ts";
import { servesRequests } from "./authorizers.ts";
import { streamsAt } from "./clients.ts";
import { streamOf } from "./dynamodb.ts";
import { LocalError } from "./error.ts";
import { createFilter, type RunningSource } from "./event-source.ts";
import { createFunction, type FunctionHost, type LocalFunction } from "./function.ts";
import { functionArn, nameOfArn } from "./names.ts";
import { startQueueSource } from "./queue-source.ts";
import { type QueueServer, sendMessage } from "./sqs.ts";
import type { Stack } from "./stack.ts";
import { StreamPages } from "./stream-pages.ts";
import { type Positions, startStreamSource } from "./stream-source.ts";

/**
 * Maximum number of environments of one function, by the source of its invocations. The number is limited because each environment is a
 * thread with about 30 MB of memory.
 */
const MAX_ENVIRONMENTS = { api: 4, events: 2, queue: 10 } as const;

export interface Servers {
  readonly dynamoDb: DynamoDBClient;
  readonly dynamoDbEndpoint: string;
  readonly queues: QueueServer;
}

type Mapping = Stack["eventSources"][number];

export function createFunctions(stack: Stack, host: FunctionHost): ReadonlyMap<string, LocalFunction> {
  return new Map(
    stack.functions.map((spec) => {
      const mapping = stack.eventSources.find(({ FunctionName }) => nameOfArn(FunctionName) === spec.name);
      const queueLimit = mapping !== undefined && isQueue(mapping) ? concurrencyOf(mapping) : MAX_ENVIRONMENTS.events;
      const max = servesRequests(spec, stack.api) ? (host.requestEnvironments ?? MAX_ENVIRONMENTS.api) : queueLimit;
      return [spec.name, createFunction(spec, max, host)];
    }),
  );
}

const filterOf = ({ id, FilterCriteria }: Mapping) => createFilter(id, FilterCriteria);
const isQueue = ({ EventSourceArn }: Mapping): boolean => EventSourceArn.startsWith("arn:aws:sqs:");
const concurrencyOf = ({ ScalingConfig }: Mapping): number =>
  Math.min(ScalingConfig?.MaximumConcurrency ?? MAX_ENVIRONMENTS.queue, MAX_ENVIRONMENTS.queue);

/**
 * Starts the event sources and then the schedules. Each schedule also invokes its function immediately. So the sweeper (a scheduled
 * function) finds the work that a restart has interrupted.
 */
export async function startSources(
  stack: Stack,
  functions: ReadonlyMap<string, LocalFunction>,
  servers: Servers,
  positions: Positions,
  log: (text: string) => void,
): Promise<RunningSource[]> {
  const sendTo = (queueArn: string, body: object): Promise<void> =>
    sendMessage(servers.queues, nameOfArn(queueArn), body);
  const sources: RunningSource[] = [];
  const streams = streamsAt(servers.dynamoDbEndpoint);
  const mappings = stack.eventSources.filter(({ Enabled }) => Enabled);
  const filters = mappings.filter((mapping) => !isQueue(mapping)).map(filterOf);
  const getRecords = (ShardIterator: string, Limit: number) =>
    streams.send(new GetRecordsCommand({ ShardIterator, Limit }));
  const pages = new StreamPages(getRecords, (record) => filters.some((isWanted) => isWanted(record)));
  for (const mapping of mappings) {
    const target = functions.get(nameOfArn(mapping.FunctionName));
    if (target === undefined) throw new LocalError(`${mapping.id}.FunctionName: not a function of the template`);
    if (isQueue(mapping)) {
      checkQueueMapping(mapping);
      sources.push(
        startQueueSource({ mapping, target, queues: servers.queues, concurrency: concurrencyOf(mapping), log }),
      );
    } else {
      const destination = mapping.DestinationConfig?.OnFailure.Destination;
      sources.push(
        startStreamSource({
          mapping,
          target,
          streams,
          isWanted: filterOf(mapping),
          pages,
          streamArn: await streamOf(servers.dynamoDb, tableOf(mapping)),
          positions,
          onFailure: async (body) => (destination === undefined ? undefined : sendTo(destination, body)),
          log,
        }),
      );
    }
  }
  return [...sources, startSchedules({ stack, functions, areMessagesLost: servers.queues.isNew, sendTo, log })];
}

function tableOf({ id, EventSourceArn }: Mapping): string {
  const name = /^arn:aws:dynamodb:.*:table\/([^/]+)\/stream\//.exec(EventSourceArn)?.[1];
  if (name === undefined)
    throw new LocalError(`${id}.EventSourceArn: the local runtime supports only streams of tables, and queues`);
  return name;
}

/**
 * Throws if the event source of a queue has settings that only streams support, because CloudFormation refuses these settings too. Also
 * throws if the event source of a queue has a filter, because the local service does not support filters on queues.
 */
function checkQueueMapping(mapping: Mapping): void {
  const streamOnly = { ...mapping.DestinationConfig, ...(mapping.BisectBatchOnFunctionError && { Bisect: true }) };
  if (Object.keys(streamOnly).length > 0 || mapping.FilterCriteria !== undefined) {
    throw new LocalError(
      `${mapping.id}: the event source of a queue has settings for streams, or settings that are not supported locally`,
    );
  }
}

interface Schedules {
  readonly stack: Stack;
  readonly functions: ReadonlyMap<string, LocalFunction>;
  /** True if the queues were created at this start. An older table may then have rows whose queue messages no longer exist. */
  readonly areMessagesLost: boolean;
  readonly sendTo: (queueArn: string, body: object) => Promise<void>;
  readonly log: (text: string) => void;
}

const unitMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
/**
 * Lambda's default number of retries of an asynchronous invocation. The first retry comes after one minute, and the second two minutes
 * after the first.
 */
const DEFAULT_RETRIES = 2;
const RETRY_MS = 60_000;

/**
 * Invokes functions at the rates of the template's rules, and also once at the start. If queue messages are lost, the first event of the
 * sweeper (the function that replaces lost messages) has `assume: "messages-lost"`. The sweeper then sends a queue message for every
 * waiting webhook delivery.
 */
function startSchedules(schedules: Schedules): RunningSource {
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
  return stack.rules.flatMap(({ id, ScheduleExpression, State, Targets }) => {
    const [, count, unit] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(ScheduleExpression) ?? [];
    if (unit === undefined) throw new LocalError(`${id}.ScheduleExpression: the local runtime supports only rate(...)`);
    if (State === "DISABLED") return [];
    const everyMs = Number(count) * (unitMs[unit] ?? Number.NaN);
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

/**
 * Invokes a function as Lambda does for asynchronous events. It retries failed invocations. After the last failed retry, it sends the event
 * to the function's dead-letter queue and on-failure destination.
 */
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
