/**
 * Shows the progress of the CSV command. In a terminal, it redraws one line. Other output gets a new line at most every two seconds while
 * rows or bytes advance.
 */

export interface Step {
  /** The name of the current step, for example `checking`. */
  readonly name: string;
  readonly done: number;
  readonly total?: number | undefined;
  readonly unit: "rows" | "bytes";
  readonly errors?: number;
}

export type Progress = ReturnType<typeof openProgress>;

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/**
 * If no progress is reported for `TICK_MS` (in a terminal) or `PLAIN_TICK_MS` (in other output), the last line is shown again with the
 * duration of the current step.
 */
const TICK_MS = 1_000;
const PLAIN_TICK_MS = 10_000;
const PLAIN_EVERY_MS = 2_000;
const DRAWN_EVERY_MS = 100;
const BAR = 24;
const ERASE_LINE = "\r\u001B[K";

export function openProgress(terminal: Terminal = process.stderr) {
  const isDrawn = terminal.isTTY === true;
  let began = { name: "", at: 0, done: 0 };
  let shownAt = 0;
  let last: Step | undefined;
  const write = (step: Step): void => {
    const now = Date.now();
    shownAt = now;
    const seconds = (now - began.at) / 1_000;
    const rate = seconds < 0.2 ? undefined : (step.done - began.done) / seconds;
    const line = `${lineOf(step, rate, isDrawn)}${seconds < TICK_MS / 1_000 ? "" : `, ${Math.floor(seconds)} s`}`;
    terminal.write(isDrawn ? `${ERASE_LINE}${line.slice(0, (terminal.columns ?? 80) - 1)}` : `${line}\n`);
  };
  // Repeat the line while the service responds slowly. Otherwise the command would look as if it hangs.
  const ticker = setInterval(() => {
    if (last !== undefined && Date.now() - shownAt >= (isDrawn ? TICK_MS : PLAIN_TICK_MS)) write(last);
  }, TICK_MS);
  ticker.unref();
  return {
    show(step: Step): void {
      last = step;
      const now = Date.now();
      const isNew = began.name !== step.name;
      if (isNew) began = { name: step.name, at: now, done: step.done };
      else if (now - shownAt < (isDrawn ? DRAWN_EVERY_MS : PLAIN_EVERY_MS)) return;
      write(step);
    },
    /** Writes a permanent line above the line of progress. */
    say: (line: string): unknown => terminal.write(`${isDrawn ? ERASE_LINE : ""}${line}\n`),
    end: (): unknown => {
      last = undefined;
      clearInterval(ticker);
      return isDrawn && terminal.write(ERASE_LINE);
    },
  };
}

export function lineOf(
  { name, done, total, unit, errors }: Step,
  perSecond: number | undefined,
  isDrawn: boolean,
): string {
  const size = (count: number): string => (unit === "bytes" ? `${(count / 1e6).toFixed(1)} MB` : digits(count));
  const rows = unit === "rows" ? " rows" : "";
  const share = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
  const parts = [
    ...(share === undefined ? [] : [`${isDrawn ? bar(share) : ""}${String(Math.floor(share * 100)).padStart(3)} %`]),
    `${size(done)}${total === undefined ? "" : ` of ${size(total)}`}${rows}`,
    ...(perSecond === undefined ? [] : [`${size(Math.round(perSecond))}${rows}/s`]),
    ...(errors === undefined ? [] : [`${digits(errors)} errors`]),
  ];
  return `${name} ${parts.join(", ")}`;
}

const bar = (share: number): string => `[${"#".repeat(Math.floor(share * BAR)).padEnd(BAR, ".")}]`;

export const digits = (count: number): string => count.toLocaleString("en-US");
