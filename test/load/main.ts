/** `npm run load` simulates the canvassing of many companies, and checks that no write and no event is lost (docs/load.md). */
import { at } from "#shared/at.ts";
import { exitCodes, runCommand } from "../../infra/cli/command/options.ts";
import { startService } from "../bench/started-service.ts";
import { type Arrival, arrivals } from "./arrivals.ts";
import { patientCall } from "./calls.ts";
import { type Company, localMembers, prepare, readTokens } from "./companies.ts";
import { type Disturbance, disturbances } from "./disturbances.ts";
import { type Options, readOptions } from "./options.ts";
import { openRecorder, type Recorder } from "./recorder.ts";
import { errorStatuses, percentile, type Row, rowOf, rowsOf, type Summary, show, verdictOf } from "./report.ts";
import { send } from "./traffic.ts";

/** Maximum number of requests of one load test, so that a typing error cannot flood a deployed service. */
const MAX_REQUESTS = 200_000;
/** Seconds of load before the measured phases, in which Lambda environments start. */
const WARM_UP_SECONDS = 5;
/** Maximum milliseconds to wait for missing events after the load, because events are late after an overload. */
const EVENTS_WAIT_MS = 120_000;

interface Phase extends Summary {
  readonly title: string;
  /** The requests of the large company. The field exists only with the options `--noisy` and `--beside`. */
  readonly large?: Row;
  /** Percentiles of the delays of the events in milliseconds. If `others` exists, only events of the companies in `others` count. */
  readonly eventDelay: { readonly p50: number; readonly p99: number };
  readonly errors: string;
}

const progress = (text: string): void => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);

interface Stage {
  readonly base: string;
  readonly companies: readonly Company[];
  readonly recorder: Recorder;
  readonly options: Options;
}

interface Plan {
  readonly title: string;
  /** The factors by which the small companies and the large company send more requests than usual. */
  readonly small?: number;
  readonly large?: number;
  readonly seed: number;
  /** What the large company does beside its usual requests. */
  readonly beside?: Disturbance;
}

function planned({ companies, options }: Stage, seconds: number, { small = 1, large = 1, seed }: Plan): Arrival[] {
  const crowds = companies.map(({ reps }, at) => ({ reps: reps.length, times: at === 0 ? large : small }));
  const plan = arrivals(crowds, seconds, options.seed * 1_000 + seed);
  if (plan.length <= MAX_REQUESTS) return plan;
  throw new Error(`the plan has ${plan.length} requests; at most ${MAX_REQUESTS} are allowed`);
}

async function play(stage: Stage, phase: Plan): Promise<Phase> {
  const { title, beside } = phase;
  const { companies, recorder, options } = stage;
  const plan = planned(stage, options.seconds, phase);
  progress(`${title}: ${plan.length} requests in ${options.seconds} s`);
  recorder.takeDelays();
  const [samples] = await Promise.all([send(stage, plan), beside?.begin()]);
  const slot = companies[0]?.throttleSlot;
  const others = companies.filter(({ throttleSlot }) => throttleSlot !== slot);
  const ofOthers = new Set(others.map(({ id }) => id));
  const isOneLoud = options.noisy !== undefined || options.beside !== undefined;
  const delays = recorder.takeDelays().filter(({ companyId }) => !isOneLoud || ofOthers.has(companyId));
  const times = delays.map(({ ms }) => ms);
  return {
    title,
    rows: rowsOf(samples),
    ...(isOneLoud && {
      others: rowOf(
        "others",
        samples.filter(({ company }) => others.includes(at(companies, company))),
      ),
      large: rowOf(
        "large company",
        samples.filter(({ company }) => company === 0),
      ),
    }),
    eventDelay: { p50: percentile(times, 0.5), p99: percentile(times, 0.99) },
    errors: errorStatuses(samples),
  };
}

async function playAll(stage: Stage): Promise<Phase[]> {
  const { times, noisy, beside } = stage.options;
  await send(stage, planned(stage, WARM_UP_SECONDS, { title: "warm-up", seed: 1 }));
  const phases = [await play(stage, { title: "as usual", seed: 2 })];
  if (times !== undefined) {
    phases.push(await play(stage, { title: `${times} times as many`, small: times, large: times, seed: 3 }));
  }
  if (noisy !== undefined) {
    phases.push(await play(stage, { title: `the large company ${noisy} times`, large: noisy, seed: 4 }));
  }
  if (beside !== undefined) {
    const disturbance = await disturbances[beside](stage.base, at(stage.companies, 0));
    const title = `beside ${beside} of the large company`;
    phases.push(await play(stage, { title, seed: 5, beside: disturbance }));
    disturbance.close();
  }
  return phases;
}

async function run(base: string, options: Options): Promise<boolean> {
  const recorder = await openRecorder(options["receiver-port"]);
  try {
    const members = options.base === undefined ? await localMembers(base, options) : readTokens(options.tokens);
    progress(`${members.length} companies, ${members.reduce((sum, { reps }) => sum + reps.length, 0)} reps`);
    const companies = await prepare(base, members, options["receiver-url"] ?? recorder.url, progress);
    const stage: Stage = { base, companies, recorder, options };
    const phases = await playAll(stage);
    const settled = await recorder.settle(base, EVENTS_WAIT_MS);
    // In a service that this command has not started, the command deletes its webhooks, but not its prospects, because other users may
    // already use them.
    for (const { admin, webhookId } of options.base === undefined ? [] : companies) {
      await patientCall(base, admin, "DELETE", `/api/webhooks/${webhookId}`);
    }
    return judge(phases, settled, options);
  } finally {
    recorder.close();
  }
}

function judge(
  phases: readonly Phase[],
  settled: Awaited<ReturnType<Recorder["settle"]>>,
  { json, noisy, "max-ratio": maxRatio }: Options,
): boolean {
  const { holds, faults, ratio } = verdictOf(phases, settled, noisy === undefined ? 0 : maxRatio);
  if (json) {
    console.log(JSON.stringify({ holds, faults, phases, settled, othersP99Ratio: ratio }));
    return holds;
  }
  for (const { title, rows, others, large, eventDelay, errors: kinds } of phases) {
    show(title, [...rows, ...(large ? [large] : []), ...(others ? [others] : [])]);
    console.log(`webhook events, commit to receiver: median ${eventDelay.p50} ms, p99 ${eventDelay.p99} ms`);
    if (kinds !== "") console.log(`errors: ${kinds}`);
  }
  console.log(
    `\n${settled.writes} acknowledged writes, ${settled.lostWrites} lost; ${settled.events} events arrived, ` +
      `${settled.lostEvents} lost, ${settled.doubledEvents} twice; ${settled.repeatedDeliveries} deliveries repeated`,
  );
  if (ratio !== undefined) console.log(`p99 of the others beside the large company: ${ratio} times as long`);
  console.log(holds ? "nothing lost, no errors" : `FAILED: ${faults.join("; ")}`);
  return holds;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  const exitCodeOf = (holds: boolean): number => (holds ? exitCodes.done : exitCodes.failed);
  if (options.base !== undefined) return exitCodeOf(await run(options.base.replace(/\/$/, ""), options));
  const rates = { REQUEST_RATE: String(options["request-rate"]), COMPANY_RATE: String(options["company-rate"]) };
  const service = await startService(["--seed", String(options["large-prospects"])], rates);
  try {
    return exitCodeOf(await run(service.url, options));
  } finally {
    await service.stop();
  }
}

await runCommand(main);
