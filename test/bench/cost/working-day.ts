/**
 * Simulates a working day: the requests of reps, the environments that Lambda starts for them, and the pieces of search indexes that each
 * environment has in memory.
 */
import { cacheBytesOf } from "#shared/company-index/read/company-index.ts";
import * as limits from "#shared/limits.ts";
import { randomSequence } from "../../../infra/local/demo/random.ts";
import { capacityOf, MEMORY_MB, type Preset } from "../../../infra/settings/capacity.ts";
import { type Arrival, arrivals } from "../../load/arrivals.ts";
import * as assumed from "./assumptions.ts";
import { functionOf, type Load, type Measured, type Operation } from "./measured.ts";

const SEED = 20_261_122;
/** Prospects of the company whose index was loaded for the measurement. The costs of loading are proportional to this number. */
const MEASURED_PROSPECTS = 100_000;
/** Bytes of a read unit, if the read is eventually consistent. */
const READ_UNIT_BYTES = 8_192;
const AUTHORIZED_SECONDS = limits.authorizationCacheSeconds;

export interface Scenario {
  readonly reps: number;
  readonly companies: number;
  /** Number of prospects of each company. */
  readonly prospects: number;
}

/** The settings of a deployment that change its costs. */
export interface Deployment {
  readonly preset: Preset;
  readonly memoryMb: (file: string) => number;
}

export function deploymentOf(preset: Preset): Deployment {
  const { memoryMb } = capacityOf({ preset });
  return { preset, memoryMb: (file) => memoryMb[file] ?? MEMORY_MB };
}

interface Environment {
  freeAt: number;
  readonly endsAt: number;
  /**
   * The bytes of each loaded piece of an index: the columns for lists, the texts, or an area of the map. The keys contain the company and
   * the piece. The piece that was used least recently comes first.
   */
  readonly parts: Map<string, number>;
}

interface FunctionDay {
  environments: Environment[];
  requests: number;
  gbSeconds: number;
}

/** Simulates one day of the scenario. The same arguments give the same day, because the seed of the random numbers is fixed. */
export function simulate(scenario: Scenario, deployment: Deployment, measured: Measured): Day {
  const { reps, companies } = scenario;
  const crowds = Array.from({ length: companies }, () => ({ reps: reps / companies, times: 1 }));
  const day = new Day({ scenario, deployment, measured, random: randomSequence(SEED + 1) });
  for (const arrival of arrivals(crowds, assumed.HOURS_A_DAY * 3_600, SEED)) day.request(arrival);
  return day;
}

interface Simulation {
  readonly scenario: Scenario;
  readonly deployment: Deployment;
  readonly measured: Measured;
  readonly random: () => number;
}

export class Day {
  readonly functions = new Map<string, FunctionDay>();
  /** Read units for loading indexes into memory. */
  loadUnits = 0;
  readonly #simulation: Simulation;
  readonly #authorizedUntil = new Map<string, number>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  request(arrival: Arrival): void {
    const at = arrival.atMs / 1_000;
    const rep = `${arrival.company} ${arrival.rep}`;
    let ms = assumed.GATEWAY_MS;
    if (at >= (this.#authorizedUntil.get(rep) ?? 0)) {
      ms += this.#invoke("authorize", at, arrival);
      this.#authorizedUntil.set(rep, at + AUTHORIZED_SECONDS);
    }
    this.#invoke(arrival.operation, at + ms / 1_000, arrival);
  }

  /** Simulates one invocation. Returns the milliseconds that the caller waits for the answer. */
  #invoke(operation: Operation, at: number, arrival: Arrival): number {
    const { measured, deployment } = this.#simulation;
    const file = functionOf[operation];
    const memoryMb = deployment.memoryMb(file);
    const used = this.#functionDay(file);
    const { environment, isNew } = freeEnvironment(used, at);
    const usage = measured.operations[operation];
    const load = this.#load(environment, operation, arrival);
    const cpuMs = usage.cpuMs + load.cpuMs + (isNew ? (measured.starts[file] ?? Number.NaN) : 0);
    const rounds = Math.round(usage.rounds);
    let billedMs = cpuMs / Math.min(1, memoryMb / assumed.WHOLE_CPU_MB) + load.bytes / assumed.LOADED_BYTES_A_MS;
    if (load.bytes > 0) billedMs += this.#tableMs(false);
    for (let round = 1; round <= rounds; round++) billedMs += this.#tableMs(usage.writeUnits > 0 && round === rounds);
    const waitedMs = billedMs + (isNew ? assumed.ENVIRONMENT_MS : 0);
    environment.freeAt = at + waitedMs / 1_000;
    used.requests++;
    used.gbSeconds += (billedMs / 1_000) * (memoryMb / 1_024);
    return waitedMs;
  }

  #functionDay(file: string): FunctionDay {
    const known = this.functions.get(file);
    if (known !== undefined) return known;
    const made: FunctionDay = { environments: [], requests: 0, gbSeconds: 0 };
    this.functions.set(file, made);
    return made;
  }

  #tableMs(isWrite: boolean): number {
    const { random } = this.#simulation;
    const { median, p99 } = isWrite ? assumed.TABLE_MS.write : assumed.TABLE_MS.read;
    // The Box-Muller transform makes a normally distributed number, so the result has a log-normal distribution.
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return median * Math.exp((Math.log(p99 / median) / 2.326) * normal);
  }

  /**
   * Loads the pieces of the index that the environment lacks, and drops other pieces if the environment has too many. Returns the processor
   * time and the bytes of the loading.
   */
  #load({ parts }: Environment, operation: Operation, arrival: Arrival): { cpuMs: number; bytes: number } {
    const { deployment } = this.#simulation;
    let [cpuMs, units] = [0, 0];
    for (const [name, load] of this.#partsOf(operation, arrival)) {
      const key = `${arrival.company} ${name}`;
      if (!parts.delete(key)) {
        cpuMs += load.cpuMs;
        units += load.readUnits;
      }
      parts.set(key, load.bytes);
    }
    if (units === 0) return { cpuMs: 0, bytes: 0 };
    this.loadUnits += units;
    const room = cacheBytesOf(deployment.memoryMb(functionOf[operation]));
    let bytes = [...parts.values()].reduce((sum, part) => sum + part, 0);
    for (const [key, part] of parts) {
      if (bytes <= room || parts.size === 1) break;
      parts.delete(key);
      bytes -= part;
    }
    return { cpuMs, bytes: units * READ_UNIT_BYTES };
  }

  #partsOf(operation: Operation, { rep }: Arrival): [name: string, load: Load][] {
    const { list, pins, search } = this.#simulation.measured.loads;
    const { prospects } = this.#simulation.scenario;
    const scale = prospects / MEASURED_PROSPECTS;
    const columns: [string, Load] = ["list", times(list, scale)];
    if (operation === "list") return [columns];
    if (operation === "search") return [columns, ["texts", times(beyond(search, list), scale)]];
    if (operation !== "pins") return [];
    const share = assumed.viewShare(prospects);
    return [[`area ${rep % Math.round(1 / share)}`, times(pins, scale * share)]];
  }
}

const times = ({ readUnits, cpuMs, bytes }: Load, factor: number): Load => ({
  readUnits: readUnits * factor,
  cpuMs: cpuMs * factor,
  bytes: bytes * factor,
});
const beyond = (all: Load, part: Load): Load => ({
  readUnits: all.readUnits - part.readUnits,
  cpuMs: all.cpuMs - part.cpuMs,
  bytes: all.bytes - part.bytes,
});

/**
 * Lambda does not document which free environment it takes. This simulation prefers the one that was used most recently, so that unused
 * environments end.
 */
function freeEnvironment(used: FunctionDay, at: number): { environment: Environment; isNew: boolean } {
  used.environments = used.environments.filter(
    ({ freeAt, endsAt }) => freeAt > at || (at - freeAt < assumed.IDLE_SECONDS && at < endsAt),
  );
  const free = used.environments.filter(({ freeAt }) => freeAt <= at);
  const best = free.toSorted((a, b) => b.freeAt - a.freeAt)[0];
  if (best !== undefined) return { environment: best, isNew: false };
  const environment: Environment = { freeAt: 0, endsAt: at + assumed.LIFE_SECONDS, parts: new Map() };
  used.environments.push(environment);
  return { environment, isNew: true };
}
