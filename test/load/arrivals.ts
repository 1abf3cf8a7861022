/**
 * Plans when each request of a load test is sent. The plan does not depend on the answers (open loop): real reps do not wait for each
 * other, so the number of requests must not decrease when the service is slow.
 */
import { randomSequence } from "../../infra/local/demo/random.ts";

/** Number of requests that one rep sends in an hour of canvassing, by kind of request. */
export const mix = { pins: 60, patch: 30, detail: 20, list: 5, search: 1, create: 3 } as const;
export type Operation = keyof typeof mix;
export const operations = ["pins", "patch", "detail", "list", "search", "create"] as const;
const requestsPerRepHour = operations.reduce((sum, operation) => sum + mix[operation], 0);

export interface Arrival {
  readonly atMs: number;
  readonly company: number;
  readonly rep: number;
  readonly operation: Operation;
}

interface Crowd {
  readonly reps: number;
  /** The factor by which each rep of this company sends more requests than `mix` says. */
  readonly times: number;
}

/**
 * Plans a load test's requests. A company's requests are independent of each other (a Poisson process). The same seed gives the same plan.
 */
export function arrivals(crowds: readonly Crowd[], seconds: number, seed: number): Arrival[] {
  const random = randomSequence(seed);
  const planned: Arrival[] = [];
  for (const [company, { reps, times }] of crowds.entries()) {
    const perMs = (reps * times * requestsPerRepHour) / 3_600_000;
    if (perMs <= 0) continue;
    for (let atMs = gap(random(), perMs); atMs < seconds * 1_000; atMs += gap(random(), perMs)) {
      planned.push({ atMs, company, rep: Math.floor(random() * reps), operation: operationAt(random()) });
    }
  }
  return planned.sort((a, b) => a.atMs - b.atMs);
}

const gap = (chance: number, perMs: number): number => -Math.log(1 - chance) / perMs;

function operationAt(chance: number): Operation {
  let left = chance * requestsPerRepHour;
  for (const operation of operations) {
    left -= mix[operation];
    if (left < 0) return operation;
  }
  return "pins";
}
