/** Starts the event sources and then the schedules of the templates. */
import type { Engines } from "../engines/engines.ts";
import { sendMessage } from "../engines/queues.ts";
import { streamOf } from "../engines/tables.ts";
import { concurrencyOf, type LocalFunction } from "../runtime/function.ts";
import { streamsAt } from "../servers/clients.ts";
import { LocalError } from "../servers/error.ts";
import { nameOfArn } from "../template/names.ts";
import { isQueue, type Mapping, type Stack } from "../template/stack.ts";
import { createFilter } from "./event-filter.ts";
import { type RunningSource, startPoller } from "./poller.ts";
import type { Positions } from "./positions.ts";
import { CALL_LIMIT, queueDriver } from "./queue-driver.ts";
import { startSchedules } from "./schedules.ts";
import { StreamDriver } from "./stream-driver.ts";

interface Hosted {
  readonly stack: Stack;
  readonly functions: ReadonlyMap<string, LocalFunction>;
  readonly engines: Pick<Engines, "dynamoDb" | "dynamoDbEndpoint" | "tableVersion" | "queues">;
  readonly positions: Positions;
  readonly log: (text: string) => void;
}

export async function startSources(hosted: Hosted): Promise<RunningSource[]> {
  const { stack, functions, engines, log } = hosted;
  const areMessagesLost = engines.queues.isNew;
  const [queues, streams] = [stack.eventSources.filter(isQueue), stack.eventSources.filter((one) => !isQueue(one))];
  return [
    ...(await streamSources(streams, hosted)),
    ...queues.map((mapping) => queueSource(mapping, hosted)),
    startSchedules({ stack, functions, areMessagesLost, log }),
  ];
}

function targetOf({ id, FunctionName }: Mapping, { functions }: Hosted): LocalFunction {
  const target = functions.get(nameOfArn(FunctionName));
  if (target === undefined) throw new LocalError(`${id}.FunctionName: not a function of the template`);
  return target;
}

async function streamSources(mappings: readonly Mapping[], hosted: Hosted): Promise<RunningSource[]> {
  const { engines, positions, log } = hosted;
  const streams = streamsAt(engines.dynamoDbEndpoint);
  return Promise.all(
    mappings.map(async (mapping) => {
      const destination = mapping.DestinationConfig?.OnFailure.Destination;
      const driver = new StreamDriver({
        mapping,
        target: targetOf(mapping, hosted),
        streams,
        tableVersion: engines.tableVersion,
        isWanted: createFilter(mapping.id, mapping.FilterCriteria),
        streamArn: await streamOf(engines.dynamoDb, tableOf(mapping)),
        positions,
        onFailure: async (body) =>
          destination === undefined ? undefined : sendMessage(engines.queues, nameOfArn(destination), body),
      });
      return startPoller(driver, log);
    }),
  );
}

function tableOf({ id, EventSourceArn }: Mapping): string {
  const name = /^arn:aws:dynamodb:.*:table\/([^/]+)\/stream\//.exec(EventSourceArn)?.[1];
  if (name === undefined)
    throw new LocalError(`${id}.EventSourceArn: the local runtime supports only streams of tables, and queues`);
  return name;
}

function queueSource(mapping: Mapping, hosted: Hosted): RunningSource {
  refuseStreamSettings(mapping);
  const { VisibilityTimeout: visibilitySeconds } =
    hosted.stack.queues.find(({ name }) => name === nameOfArn(mapping.EventSourceArn)) ?? {};
  if (visibilitySeconds === undefined) {
    throw new LocalError(`${mapping.id}.EventSourceArn: not a queue of the template with a visibility timeout`);
  }
  const driver = queueDriver({
    mapping,
    target: targetOf(mapping, hosted),
    queues: hosted.engines.queues,
    visibilitySeconds,
    concurrency: concurrencyOf(mapping),
  });
  return startPoller(driver, hosted.log);
}

/**
 * Refuses settings that CloudFormation refuses for queues too, and a filter or a batching window, which the local service does not support
 * for queues. Without a batching window, Lambda accepts batches of at most 10 messages.
 */
function refuseStreamSettings(mapping: Mapping): void {
  const { DestinationConfig, BisectBatchOnFunctionError, FilterCriteria, MaximumBatchingWindowInSeconds } = mapping;
  const isUnsupported =
    BisectBatchOnFunctionError || MaximumBatchingWindowInSeconds > 0 || mapping.BatchSize > CALL_LIMIT;
  if (DestinationConfig ?? FilterCriteria ?? isUnsupported) {
    throw new LocalError(
      `${mapping.id}: the event source of a queue has settings for streams, or settings that are not supported locally`,
    );
  }
}
