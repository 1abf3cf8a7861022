/** The progress of the CSV command: one redrawn line in a terminal, plain lines elsewhere. */

export interface Step {
  readonly name: string;
  readonly done: number;
  readonly total?: number | null | undefined;
  readonly unit: "rows" | "bytes";
  readonly errors?: number;
}

export type Progress = ReturnType<typeof openProgress>;

type Terminal = { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown };

export function openProgress(terminal: Terminal = process.stderr) {
  const isDrawn = terminal.isTTY === true;
  /** Milliseconds between two lines about the same step, if it has advanced, and if it has not. */
  const [advancingMs, idleMs] = isDrawn ? [100, 1_000] : [2_000, 10_000];
  const erase = isDrawn ? "\r\u001B[K" : "";
  let last: Step | undefined;
  let hasEnded = false;
  let began = { at: 0, done: 0 };
  let shownAt = 0;
  const showAfter = (leastMs: number): void => {
    const now = Date.now();
    if (last === undefined || now - shownAt < leastMs) return;
    shownAt = now;
    const seconds = (now - began.at) / 1_000;
    const rate = seconds < 0.2 ? undefined : (last.done - began.done) / seconds;
    const line = `${lineOf(last, rate, isDrawn)}${seconds < 1 ? "" : `, ${Math.floor(seconds)} s`}`;
    terminal.write(isDrawn ? `${erase}${line.slice(0, (terminal.columns ?? 80) - 1)}` : `${line}\n`);
  };
  // Otherwise the command would look as if it hangs while the service responds slowly.
  const ticker = setInterval(() => showAfter(idleMs), 1_000).unref();
  return {
    hint: "the service has done nothing yet: run the same command again",
    show(step: Step): void {
      if (hasEnded) return;
      const isNew = last?.name !== step.name;
      if (isNew) began = { at: Date.now(), done: step.done };
      last = step;
      showAfter(isNew ? 0 : advancingMs);
    },
    /** Writes a permanent line above the line of progress. */
    say: (line: string): unknown => terminal.write(`${erase}${line}\n`),
    /** Removes the line of progress. After this call, `show` prints nothing, even if a transfer is still running. */
    end(): void {
      hasEnded = true;
      last = undefined;
      clearInterval(ticker);
      terminal.write(erase);
    },
  };
}

export function lineOf({ name, done, total, unit, errors }: Step, perSecond: number | undefined, isDrawn: boolean) {
  const size = (count: number): string => (unit === "bytes" ? `${(count / 1e6).toFixed(1)} MB` : digits(count));
  const rows = unit === "rows" ? " rows" : "";
  const share = total ? Math.min(1, done / total) : 0;
  const bar = isDrawn ? `[${"#".repeat(Math.floor(share * 24)).padEnd(24, ".")}]` : "";
  const parts = [
    total && `${bar}${String(Math.floor(share * 100)).padStart(3)} %`,
    `${size(done)}${total == null ? "" : ` of ${size(total)}`}${rows}`,
    perSecond !== undefined && `${size(Math.round(perSecond))}${rows}/s`,
    errors !== undefined && `${digits(errors)} errors`,
  ];
  return `${name} ${parts.filter(Boolean).join(", ")}`;
}

export const digits = (count: number): string => count.toLocaleString("en-US");
