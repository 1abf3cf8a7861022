/** Runs as a separate process that loads a bundled function, and prints the processor time of its start and of a warm call. */
import type { Writable } from "node:stream";
import * as z from "zod/mini";
import { lambdaContext } from "../../harness/proxy-event.ts";
import { nowhere, taken } from "../clock.ts";

const Job = z.object({ bundle: z.string(), events: z.array(z.unknown()), warmUp: z.int(), calls: z.int() });

type Handler = (event: unknown, ...rest: unknown[]) => Promise<unknown>;

/** Lambda's runtime sends the answer, so the time of sending does not belong to the function. This replacement discards the answer. */
const awslambda = {
  streamifyResponse:
    (handler: (event: unknown, stream: Writable, context: unknown) => Promise<unknown>): Handler =>
    async (event, context) => {
      const stream = nowhere();
      const ended = new Promise((resolve) => stream.once("finish", resolve));
      await handler(event, stream, context);
      await ended;
    },
  HttpResponseStream: {
    from(stream: Writable, metadata: unknown): Writable {
      assertSuccess(metadata);
      return stream;
    },
  },
};

const Answer = z.object({ statusCode: z.optional(z.number().check(z.maximum(304))) });

/** Throws if the function has refused the request, because a refused request costs less than a successful one. */
const assertSuccess = (answer: unknown): void => {
  if (!Answer.safeParse(answer ?? {}).success) throw new Error(`the function answered ${JSON.stringify(answer)}`);
};

async function run({ bundle, events, warmUp, calls }: z.infer<typeof Job>) {
  Object.assign(globalThis, { awslambda });
  const context = { ...lambdaContext, getRemainingTimeInMillis: () => 600_000 };
  let next = 0;
  const call = async (times: number): Promise<void> => {
    const { handler }: { handler: Handler } = await import(bundle);
    for (let i = 0; i < times; i++) assertSuccess(await handler(events[next++ % events.length], context));
  };
  const first = await taken(() => call(1));
  await call(warmUp);
  const warmCpuMs = (await taken(() => call(calls))).cpuMs / calls;
  // The first call includes loading the bundle. Its time minus the time of a warm call is the time of the start.
  return { startCpuMs: first.cpuMs - warmCpuMs, warmCpuMs };
}

const times = await run(Job.parse(JSON.parse(process.argv[2] ?? "")));
process.stdout.write(`\n${JSON.stringify(times)}\n`, () => process.exit(0));
