/** Creates the functions of the templates, and decides how many environments each of them may have. */
import { nameOfArn } from "../template/names.ts";
import { type FunctionSpec, isQueue, type Mapping, type Stack, servesRequests } from "../template/stack.ts";
import { createFunction, type LocalFunction } from "./function.ts";
import type { FunctionHost } from "./pool.ts";

/** Maximum number of environments of a function, by the source of its invocations. Each is a thread with about 30 MB of memory. */
const MAX_ENVIRONMENTS = { api: 4, events: 2, queue: 10 } as const;

export const createFunctions = (
  stack: Stack,
  host: FunctionHost,
  requestEnvironments: number = MAX_ENVIRONMENTS.api,
): ReadonlyMap<string, LocalFunction> =>
  new Map(
    stack.functions.map((spec) => [
      spec.name,
      createFunction(spec, servesRequests(spec, stack.api) ? requestEnvironments : environmentsFor(spec, stack), host),
    ]),
  );

function environmentsFor({ name }: FunctionSpec, { eventSources }: Stack): number {
  const mapping = eventSources.find(({ FunctionName }) => nameOfArn(FunctionName) === name);
  return mapping !== undefined && isQueue(mapping) ? concurrencyOf(mapping) : MAX_ENVIRONMENTS.events;
}

/** How many batches the event source of a queue processes at the same time. */
export const concurrencyOf = ({ ScalingConfig }: Mapping): number =>
  Math.min(ScalingConfig?.MaximumConcurrency ?? MAX_ENVIRONMENTS.queue, MAX_ENVIRONMENTS.queue);
