/** Measures wall time and processor time. Medians of several runs are used, because other processes disturb single measurements. */
import { Writable } from "node:stream";

export interface Taken {
  readonly wallMs: number;
  /** Processor time of all threads of this process, in user mode and in the kernel. */
  readonly cpuMs: number;
}

export async function taken(work: () => unknown): Promise<Taken> {
  const cpu = process.cpuUsage();
  const from = performance.now();
  await work();
  const wallMs = performance.now() - from;
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs, cpuMs: (user + system) / 1_000 };
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

export async function medianOf(runs: number, work: () => unknown): Promise<Taken> {
  const samples: Taken[] = [];
  for (let run = 0; run < runs; run++) samples.push(await taken(work));
  return middle(samples);
}

/** Runs all kinds of work in turn, so that other load of the machine affects them equally. Returns the median of each kind. */
export async function interleaved<Name extends string>(
  runs: number,
  works: Readonly<Record<Name, () => unknown>>,
): Promise<Map<string, Taken>> {
  const samples = new Map<string, Taken[]>();
  for (let run = 0; run < runs; run++) {
    for (const [name, work] of Object.entries<() => unknown>(works)) {
      samples.set(name, [...(samples.get(name) ?? []), await taken(work)]);
    }
  }
  return new Map([...samples].map(([name, list]) => [name, middle(list)]));
}

/** Returns a stream that discards what is written to it. */
export const nowhere = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() });

const middle = (samples: readonly Taken[]): Taken => ({
  wallMs: median(samples.map(({ wallMs }) => wallMs)),
  cpuMs: median(samples.map(({ cpuMs }) => cpuMs)),
});
