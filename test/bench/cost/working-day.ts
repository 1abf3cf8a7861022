/**
 * Simulates a working day of reps: their requests, the environments of the functions, and the index parts that each environment has in
 * memory. The random numbers depend on a seed, so two runs with the same seed have the same result.
 */
import { randomSequence } from "../../../infra/local/demo/random.ts";
import {
  ENVIRONMENT_MS,
  GATEWAY_MS,
  HOURS_A_DAY,
  IDLE_SECONDS,
  LIFE_SECONDS,
  LISTED_PROSPECTS,
  LOADED_BYTES_A_MS,
  PAGE_SIZE,
  PER_HOUR,
  SAME_VIEW,
  TABLE_MS,
  viewShare,
  WHOLE_CPU_MB,
} from "./assumptions.ts";
import type { Day, FunctionDay, Scenario } from "./day.ts";
import type { Design } from "./design.ts";
import { functionOf, type Load, type Measured, type Operation, type Usage } from "./measured.ts";
import { RowMemory } from "./row-memory.ts";

const SEED = 20_261_122;
/** Number of prospects of the company whose loads were measured. The costs of a load are proportional to the number of prospects. */
const MEASURED_PROSPECTS = 100_000;
/** Number of bytes that one read unit reads, if the read is eventually consistent. */
const READ_UNIT_BYTES = 8_192;

type Kind = keyof Measured["loads"];

interface LoadedCompany {
  bytes: number;
  /** The parts of the index that are in memory: `list`, `search`, and one part for each map area. */
  readonly parts: Set<string>;
  /** Number of flushes of the index whose changes the environment has loaded. */
  flushes: number;
}

interface LambdaEnvironment {
  freeAt: number;
  lastUsed: number;
  readonly endsAt: number;
  readonly isProvisioned: boolean;
  readonly cache: Map<number, LoadedCompany>;
  cachedBytes: number;
  readonly rows: RowMemory;
}

/**
 * The operations of the scheduled smoke test. The smoke test uses a separate company, whose index is so small that loading it costs
 * nothing.
 */
const SMOKE_TEST: readonly Operation[] = ["authorize", "create", "list", "patch", "detail"];

export function simulate(scenario: Scenario, design: Design, measured: Measured, seed = SEED): Day {
  return new WorkingDay(scenario, design, measured, seed).run();
}

class WorkingDay {
  readonly #scenario: Scenario;
  readonly #design: Design;
  readonly #measured: Measured;
  readonly #random: () => number;
  readonly #environments = new Map<string, LambdaEnvironment[]>();
  readonly #functions = new Map<string, FunctionDay>();
  readonly #latencies = new Map<Operation, number[]>();
  readonly #authorizedUntil: Float64Array;
  /**
   * `#viewedAt` has the time of each rep's last map view, in seconds. `#writesOfRep` counts each rep's writes. `#writesAtView` is the value
   * of this count at the last map view.
   */
  readonly #viewedAt: Float64Array;
  readonly #writesOfRep: Float64Array;
  readonly #writesAtView: Float64Array;
  #loadUnits = 0;
  #loads = 0;
  #notModified = 0;
  readonly #unread = { list: { sum: 0, count: 0 }, search: { sum: 0, count: 0 } };
  #smokeTestAt = 0;

  constructor(scenario: Scenario, design: Design, measured: Measured, seed: number) {
    this.#scenario = scenario;
    this.#design = design;
    this.#measured = measured;
    this.#random = randomSequence(seed);
    this.#authorizedUntil = new Float64Array(scenario.reps);
    this.#viewedAt = new Float64Array(scenario.reps).fill(Number.NEGATIVE_INFINITY);
    this.#writesOfRep = new Float64Array(scenario.reps);
    this.#writesAtView = new Float64Array(scenario.reps);
  }

  run(): Day {
    const { reps } = this.#scenario;
    const perHour = Object.entries(PER_HOUR);
    const total = perHour.reduce((sum, [, count]) => sum + count, 0);
    const secondsBetween = 3_600 / (reps * total);
    const end = HOURS_A_DAY * 3_600;
    for (let at = this.#pause(secondsBetween); at < end; at += this.#pause(secondsBetween)) {
      this.#smokeTestUntil(at);
      const rep = Math.floor(this.#random() * reps);
      this.#request(at, rep, this.#operation(total));
    }
    return {
      functions: this.#functions,
      latencies: new Map([...this.#latencies].map(([name, list]) => [name, Float64Array.from(list).sort()])),
      loadUnits: this.#loadUnits,
      loads: this.#loads,
      notModified: this.#notModified,
      unread: { list: meanOf(this.#unread.list), search: meanOf(this.#unread.search) },
    };
  }

  /** Simulates the smoke tests that are due until `at`. They occupy environments, but their requests are not counted. */
  #smokeTestUntil(at: number): void {
    const { smokeTestMinutes } = this.#design;
    if (smokeTestMinutes === undefined) return;
    for (; this.#smokeTestAt < at; this.#smokeTestAt += smokeTestMinutes * 60) {
      for (const operation of SMOKE_TEST) {
        const { environment, isNew } = this.#environmentFor(functionOf[operation], this.#smokeTestAt);
        const { loadCpuMs = 0, firstCallCpuMs = 0 } = isNew ? (this.#measured.starts[functionOf[operation]] ?? {}) : {};
        const ms = (isNew ? ENVIRONMENT_MS : 0) + loadCpuMs + firstCallCpuMs + SMOKE_TEST_MS;
        environment.freeAt = this.#smokeTestAt + ms / 1_000;
        environment.lastUsed = environment.freeAt;
      }
    }
  }

  /**
   * Returns a random pause between two requests. Requests arrive independently of each other, so the pauses have an exponential
   * distribution.
   */
  #pause(meanSeconds: number): number {
    return -Math.log(1 - this.#random()) * meanSeconds;
  }

  #operation(total: number): keyof typeof PER_HOUR {
    let left = this.#random() * total;
    for (const name of ["pins", "patch", "detail", "list", "search", "create"] as const) {
      left -= PER_HOUR[name];
      if (left < 0) return name;
    }
    return "pins";
  }

  #request(at: number, rep: number, operation: keyof typeof PER_HOUR): void {
    let ms = GATEWAY_MS;
    if (at >= (this.#authorizedUntil[rep] ?? 0)) {
      ms += this.#invoke(at, "authorize", undefined, rep);
      this.#authorizedUntil[rep] = at + 60;
    }
    const isWrite = operation === "patch" || operation === "create";
    if (isWrite) this.#writesOfRep[rep] = (this.#writesOfRep[rep] ?? 0) + 1;
    const kind = operation === "pins" || operation === "list" || operation === "search" ? operation : undefined;
    ms += this.#invoke(at + ms / 1_000, operation, kind, rep);
    const list = this.#latencies.get(operation) ?? [];
    list.push(ms);
    this.#latencies.set(operation, list);
  }

  /** Simulates one request. Returns the milliseconds that the caller waits for the answer. */
  #invoke(at: number, operation: Operation, kind: Kind | undefined, rep: number): number {
    const file = functionOf[operation];
    const memoryMb = this.#design.memoryMb(file);
    const cpuShare = Math.min(1, memoryMb / WHOLE_CPU_MB);
    const day = this.#functions.get(file) ?? { requests: 0, starts: 0, gbSeconds: 0, provisionedGbSeconds: 0 };
    this.#functions.set(file, day);
    const { environment, isNew } = this.#environmentFor(file, at);
    const usage = this.#usageOf(operation, environment, rep);
    const { loadCpuMs = 0, firstCallCpuMs = 0 } = isNew ? (this.#measured.starts[file] ?? {}) : {};
    let billedMs = (usage.cpuMs + loadCpuMs + firstCallCpuMs) / cpuShare;
    const rounds = Math.round(usage.rounds);
    for (let round = 0; round < rounds; round++)
      billedMs += this.#tableMs(usage.writeUnits > 0 && round === rounds - 1);
    if (kind !== undefined) billedMs += this.#loadMs(environment, kind, rep, at, memoryMb, cpuShare);
    if (operation === "pins" && this.#isUnchanged(rep, at)) this.#notModified++;
    const waitedMs = billedMs + (isNew ? ENVIRONMENT_MS : 0);
    environment.freeAt = at + waitedMs / 1_000;
    environment.lastUsed = environment.freeAt;
    day.requests++;
    if (isNew) day.starts++;
    const gbSeconds = (billedMs / 1_000) * (memoryMb / 1_024);
    if (environment.isProvisioned) day.provisionedGbSeconds += gbSeconds;
    else day.gbSeconds += gbSeconds;
    return waitedMs;
  }

  /**
   * Returns what a request uses. A list reads only those prospects of its page that are not in memory. The simulation assumes that a search
   * returns prospects that no earlier search has returned, so it finds none of them in memory.
   */
  #usageOf(
    operation: Operation,
    { rows }: LambdaEnvironment,
    rep: number,
  ): Pick<Usage, "cpuMs" | "rounds" | "writeUnits"> {
    const all = this.#measured.operations[operation];
    if (operation !== "list" && operation !== "search") return all;
    const seen = this.#unread[operation];
    seen.count++;
    const pages = Math.ceil(Math.min(LISTED_PROSPECTS, this.#scenario.prospects) / PAGE_SIZE);
    const page = operation === "list" ? `${rep} ${Math.floor(this.#random() * pages)}` : `search ${seen.count}`;
    const share = this.#design.keepsRows
      ? rows.read(rep % this.#scenario.companies, page, this.#writesOfRep[rep] ?? 0)
      : 1;
    seen.sum += share;
    const known = this.#measured.inMemory[operation];
    return {
      cpuMs: known.cpuMs + share * (all.cpuMs - known.cpuMs),
      rounds: share > 0 ? all.rounds : known.rounds,
      writeUnits: 0,
    };
  }

  /**
   * Returns a free environment, or a new one if none is free. Lambda does not document which free environment it takes. This simulation
   * takes the one that was used most recently, so that unused environments end.
   */
  #environmentFor(file: string, at: number): { environment: LambdaEnvironment; isNew: boolean } {
    const known = this.#environments.get(file) ?? this.#provisioned(file);
    const alive = known.filter(
      ({ isProvisioned, freeAt, lastUsed, endsAt }) =>
        isProvisioned || freeAt > at || (at - lastUsed < IDLE_SECONDS && at < endsAt),
    );
    const free = alive.filter(({ freeAt }) => freeAt <= at);
    const found = free.reduce<LambdaEnvironment | undefined>(
      (best, one) => (best === undefined || rank(one) > rank(best) ? one : best),
      undefined,
    );
    if (found !== undefined) {
      this.#environments.set(file, alive);
      return { environment: found, isNew: false };
    }
    const environment = this.#newEnvironment({ endsAt: at + LIFE_SECONDS });
    this.#environments.set(file, [...alive, environment]);
    return { environment, isNew: true };
  }

  #provisioned(file: string): LambdaEnvironment[] {
    const count = this.#design.provisioned[file] ?? 0;
    return Array.from({ length: count }, () => this.#newEnvironment({ isProvisioned: true }));
  }

  #newEnvironment(given: Partial<LambdaEnvironment>): LambdaEnvironment {
    return { ...fresh, cache: new Map(), rows: new RowMemory(this.#measured.rowTextBytes), ...given };
  }

  #tableMs(isWrite: boolean): number {
    const { median, p99 } = isWrite ? TABLE_MS.write : TABLE_MS.read;
    // The Box-Muller transform makes a normally distributed number. The result has a log-normal distribution with this median and this 99th
    // percentile.
    const normal = Math.sqrt(-2 * Math.log(1 - this.#random())) * Math.cos(2 * Math.PI * this.#random());
    return median * Math.exp((Math.log(p99 / median) / 2.326) * normal);
  }

  /**
   * Returns the milliseconds that the environment needs to load index data for the request. If parts of the index are missing in its
   * memory, it loads them. Otherwise it loads only the changes that flushes have made since its last load.
   */
  #loadMs(
    environment: LambdaEnvironment,
    kind: Kind,
    rep: number,
    at: number,
    memoryMb: number,
    cpuShare: number,
  ): number {
    const { companies, prospects } = this.#scenario;
    const company = rep % companies;
    const share = kind === "pins" ? viewShare(prospects) : 1;
    const areas = Math.round(1 / share);
    const part = kind === "pins" ? `area ${Math.floor(rep / companies) % areas}` : kind;
    const flushes = Math.floor((at / 3_600) * this.#flushesAnHour());
    const found = environment.cache.get(company);
    const load = this.#loadOf(kind);
    const known = found ?? { bytes: 0, parts: new Set<string>(), flushes };
    const wanted = kind === "search" && !known.parts.has("search") ? this.#beyondList(load, known) : load;
    const isMissing = !known.parts.has(part) && !(environment.isProvisioned && this.#design.loadsAtStart === true);
    let units = isMissing ? wanted.readUnits * share : 0;
    const cpuMs = isMissing ? wanted.cpuMs * share : 0;
    if (isMissing) {
      this.#loads++;
      known.bytes += wanted.bytes * share;
      environment.cachedBytes += wanted.bytes * share;
      known.parts.add(part);
      if (kind === "search") known.parts.add("list");
    } else if (flushes > known.flushes) {
      const { background } = this.#measured;
      const written = (background.writeUnits - 1) * this.#design.flushEntries * 1_024;
      units += Math.min(
        load.readUnits * share,
        ((flushes - known.flushes) * Math.max(0, written)) / READ_UNIT_BYTES + 1,
      );
    }
    known.flushes = flushes;
    environment.cache.delete(company);
    environment.cache.set(company, known);
    this.#evict(environment, company, memoryMb);
    this.#loadUnits += units;
    if (units === 0) return 0;
    return cpuMs / cpuShare + (isMissing ? this.#tableMs(false) : 0) + (units * READ_UNIT_BYTES) / LOADED_BYTES_A_MS;
  }

  #loadOf(kind: Kind): Load {
    const scale = this.#scenario.prospects / MEASURED_PROSPECTS;
    const { readUnits, cpuMs, bytes, pieces } = this.#measured.loads[kind];
    return { readUnits: readUnits * scale, cpuMs: cpuMs * scale, bytes: bytes * scale, pieces: pieces * scale };
  }

  /** Returns what a search must load. If the environment already has the columns of lists, only the searchable texts are missing. */
  #beyondList(search: Load, { parts }: LoadedCompany): Load {
    if (!parts.has("list")) return search;
    const list = this.#loadOf("list");
    return {
      readUnits: search.readUnits - list.readUnits,
      cpuMs: search.cpuMs - list.cpuMs,
      bytes: search.bytes - list.bytes,
      pieces: search.pieces - list.pieces,
    };
  }

  #evict(environment: LambdaEnvironment, used: number, memoryMb: number): void {
    const room = this.#design.cacheBytes(memoryMb);
    const texts = this.#loadOf("search").bytes - this.#loadOf("list").bytes;
    for (const [company, { parts }] of environment.cache) {
      if (environment.cachedBytes <= room) return;
      const known = environment.cache.get(company);
      if (company === used || known === undefined || !parts.has("search")) continue;
      parts.delete("search");
      known.bytes -= texts;
      environment.cachedBytes -= texts;
    }
    for (const [company, { bytes }] of environment.cache) {
      if (environment.cachedBytes <= room || company === used) return;
      environment.cache.delete(company);
      environment.cachedBytes -= bytes;
    }
  }

  #flushesAnHour(): number {
    const { reps, companies } = this.#scenario;
    return ((reps / companies) * (PER_HOUR.patch + PER_HOUR.create)) / this.#design.flushEntries;
  }

  /**
   * Returns true if a map view is answered with 304: the rep views the same area as before, and nobody has changed a prospect of this area
   * since.
   */
  #isUnchanged(rep: number, at: number): boolean {
    const viewedAt = this.#viewedAt[rep] ?? Number.NEGATIVE_INFINITY;
    const ownWrites = (this.#writesOfRep[rep] ?? 0) - (this.#writesAtView[rep] ?? 0);
    this.#viewedAt[rep] = at;
    this.#writesAtView[rep] = this.#writesOfRep[rep] ?? 0;
    if (!this.#design.revalidates || viewedAt === Number.NEGATIVE_INFINITY || this.#random() >= SAME_VIEW) return false;
    const { reps, companies, prospects } = this.#scenario;
    const others =
      (reps / companies - 1) * (PER_HOUR.patch + PER_HOUR.create) * Math.min(1, this.#measured.pinsInView / prospects);
    const noneOfOthers = Math.exp((-others * (at - viewedAt)) / 3_600);
    return ownWrites === 0 && this.#random() < noneOfOthers;
  }
}

/** The milliseconds for which one request of the smoke test occupies a warm environment. */
const SMOKE_TEST_MS = 30;

const meanOf = ({ sum, count }: { sum: number; count: number }): number => (count === 0 ? 0 : sum / count);

const fresh = { freeAt: 0, lastUsed: 0, endsAt: 0, isProvisioned: false, cachedBytes: 0 };

/**
 * Returns the rank of a free environment. Every environment with provisioned concurrency has a higher rank than every other one. Within
 * both groups, the rank is higher if the environment was used more recently.
 */
const rank = ({ isProvisioned, lastUsed }: LambdaEnvironment): number =>
  lastUsed + (isProvisioned ? Number.MAX_SAFE_INTEGER / 2 : 0);

/**
 * Returns a quantile of sorted values.
 *
 * @param part the quantile, from 0 to 1
 */
export const quantile = (sorted: Float64Array, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
