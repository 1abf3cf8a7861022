/** Runs a resolved stack on the local servers: functions, event sources and schedules. */
import { type AwsCall, streamsAt } from "./aws-json.ts";
import { LocalError } from "./error.ts";
import { createFunction, type FunctionHost, type LocalFunction } from "./function.ts";
import { servesRequests } from "./function-address.ts";
import { nameOfArn } from "./names.ts";
import type { Positions } from "./positions.ts";
import { startQueueSource } from "./queue-source.ts";
import { type QueueServer, sendMessage } from "./queues.ts";
import { createFilter } from "./record-filter.ts";
import { startSchedules } from "./schedules.ts";
import type { RunningSource } from "./sources.ts";
import type { Stack } from "./stack.ts";
import { StreamPages } from "./stream-pages.ts";
import { startStreamSource } from "./stream-source.ts";
import { streamOf } from "./tables.ts";

/** Environments of one function at most: each is a thread with some 30 MB. */
const MAX_ENVIRONMENTS = { api: 4, events: 2, queue: 10 } as const;

export interface Servers {
  readonly dynamoDb: AwsCall;
  readonly dynamoDbEndpoint: string;
  readonly queues: QueueServer;
}

type Mapping = Stack["eventSources"][number];

export function createFunctions(stack: Stack, host: FunctionHost): ReadonlyMap<string, LocalFunction> {
  return new Map(
    stack.functions.map((spec) => {
      const mapping = stack.eventSources.find(({ FunctionName }) => nameOfArn(FunctionName) === spec.name);
      const queueLimit = mapping !== undefined && isQueue(mapping) ? concurrencyOf(mapping) : MAX_ENVIRONMENTS.events;
      const max = servesRequests(spec, stack.api) ? MAX_ENVIRONMENTS.api : queueLimit;
      return [spec.name, createFunction(spec, max, host)];
    }),
  );
}

const filterOf = ({ id, FilterCriteria }: Mapping) => createFilter(id, FilterCriteria);
const isQueue = ({ EventSourceArn }: Mapping): boolean => EventSourceArn.startsWith("arn:aws:sqs:");
const concurrencyOf = ({ ScalingConfig }: Mapping): number =>
  Math.min(ScalingConfig?.MaximumConcurrency ?? MAX_ENVIRONMENTS.queue, MAX_ENVIRONMENTS.queue);

/** Pollers first, then the rules, which fire at once. */
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
  const pages = new StreamPages(streams, (record) => filters.some((isWanted) => isWanted(record)));
  for (const mapping of mappings) {
    const target = functions.get(nameOfArn(mapping.FunctionName));
    if (target === undefined) throw new LocalError(`${mapping.id}.FunctionName: names no function of the template`);
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
  return [...sources, startSchedules({ stack, functions, sendTo, log })];
}

function tableOf({ id, EventSourceArn }: Mapping): string {
  const name = /^arn:aws:dynamodb:.*:table\/([^/]+)\/stream\//.exec(EventSourceArn)?.[1];
  if (name === undefined)
    throw new LocalError(`${id}.EventSourceArn: only tables' streams and queues are supported locally`);
  return name;
}

/** CloudFormation refuses these on a queue; here they would be ignored. */
function checkQueueMapping(mapping: Mapping): void {
  const streamOnly = { ...mapping.DestinationConfig, ...(mapping.BisectBatchOnFunctionError && { Bisect: true }) };
  if (Object.keys(streamOnly).length > 0 || mapping.FilterCriteria !== undefined) {
    throw new LocalError(
      `${mapping.id}: a queue's event source has settings that are for streams or not supported locally`,
    );
  }
}
