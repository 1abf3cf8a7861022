/** Reads the command-line options of the load test. */
import * as z from "zod/mini";
import { HttpUrl, must, numberFrom, wholeNumber } from "../../infra/cli/command/accepted.ts";
import { checked, optionsIn, optionsOf, WrongUsage } from "../../infra/cli/command/options.ts";

const usage = `npm run load -- [options]
    simulates the canvassing of many small companies and a large one, and checks that no write and no event is lost
    --companies N        small companies (200)
    --reps N             reps of a small company (2)
    --large-reps N       reps of the large company (50)
    --large-prospects N  prospects of the large company (5000)
    --seconds N          length of each measured phase in seconds (30)
    --times N            a second phase in which every company sends N times as many requests; not with --noisy
    --noisy N            a second phase in which only the large company sends N times as many requests; not with --times
    --beside NAME        a second phase in which the large company also has a bulk job with an event for each prospect (bulk), the
                         same for a receiver that never answers (hanging), or changes with many registrations each (fan-out)
    --max-ratio N        with --noisy, the p99 latency of the other companies may be N times as long as before (2); 0 only prints it
    --seed N             another random plan (1)
    --json               prints the result as JSON
  a local service that the command starts, with these throttles:
    --request-rate N     requests per second of all companies together (60)
    --company-rate N     requests per second of each company (5)
  or a running service:
    --base URL           the service, without /api
    --tokens FILE        JSON: [{"admin": TOKEN, "reps": [TOKEN, …]}, …], the large company first (or the variable LOAD_TOKENS)
    --receiver-url URL   where the service reaches the webhook receiver (default: the receiver's address on this machine)
    --receiver-port N    port of this machine to which the URL leads (default: any free port)
exit code 0: nothing is lost, no request has failed, and the ratio is held, 1: one of these is not so, or any other error,
2: wrong usage`;

const Rate = wholeNumber(1, 1_000_000);
const Options = z.object({
  companies: z._default(wholeNumber(1, 2_000), 200),
  reps: z._default(wholeNumber(1, 100), 2),
  "large-reps": z._default(wholeNumber(1, 1_000), 50),
  "large-prospects": z._default(wholeNumber(0, 1_000_000), 5_000),
  seconds: z._default(numberFrom(1, 600), 30),
  times: z.optional(numberFrom(1, 100)),
  noisy: z.optional(numberFrom(1, 1_000)),
  beside: z.optional(z.enum(["hanging", "fan-out", "bulk"], must("hanging or fan-out or bulk"))),
  "max-ratio": z._default(numberFrom(0, 1_000), 2),
  seed: z._default(wholeNumber(1, 1_000_000_000), 1),
  json: z._default(z.boolean(), false),
  "request-rate": z._default(Rate, 60),
  "company-rate": z._default(Rate, 5),
  base: z.optional(HttpUrl),
  tokens: z.optional(z.string()),
  "receiver-url": z.optional(HttpUrl),
  "receiver-port": z._default(wholeNumber(0, 65_535), 0),
});
export type Options = z.infer<typeof Options>;

/** Reads the options. Throws WrongUsage with a line for each wrong option, or for an option that has no effect with the other options. */
export function readOptions(args: readonly string[]): Options {
  const given: Readonly<Record<string, unknown>> = optionsOf(args, optionsIn(Options.shape), usage);
  const options = checked(Options, given, usage);
  const refuse = (reason: string): never => {
    throw new WrongUsage(`${reason}: see npm run load -- --help`);
  };
  const second = ["noisy", "times", "beside"].filter((name) => name in given);
  if (second.length > 1) refuse(`--${second.join(" and --")} cannot be combined: run the command once with each`);
  if (given["max-ratio"] !== undefined && options.noisy === undefined) refuse("--max-ratio: needs --noisy");
  const isLocal = options.base === undefined;
  const useless = isLocal
    ? ["tokens", "receiver-url", "receiver-port"]
    : ["companies", "reps", "large-reps", "large-prospects", "request-rate", "company-rate", "beside"];
  const found = useless.find((name) => name in given);
  if (found !== undefined) refuse(isLocal ? `--${found}: needs --base` : `--${found}: has no effect with --base`);
  return options;
}
