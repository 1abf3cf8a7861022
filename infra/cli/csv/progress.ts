/** Shows the progress of the CSV command: on a terminal one line that is redrawn, elsewhere a line every two seconds. */

export interface Step {
  /** The current step, for example `checking`. */
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

const PLAIN_EVERY_MS = 2_000;
const DRAWN_EVERY_MS = 100;
const BAR = 24;
const ERASE_LINE = "\r\u001B[K";

export function openProgress(terminal: Terminal = process.stderr) {
  const isDrawn = terminal.isTTY === true;
  let began = { name: "", at: 0, done: 0 };
  let shownAt = 0;
  return {
    show(step: Step): void {
      const now = Date.now();
      const isNew = began.name !== step.name;
      if (isNew) began = { name: step.name, at: now, done: step.done };
      else if (now - shownAt < (isDrawn ? DRAWN_EVERY_MS : PLAIN_EVERY_MS)) return;
      shownAt = now;
      const seconds = (now - began.at) / 1_000;
      const line = lineOf(step, seconds < 0.2 ? undefined : (step.done - began.done) / seconds, isDrawn);
      terminal.write(isDrawn ? `${ERASE_LINE}${line.slice(0, (terminal.columns ?? 80) - 1)}` : `${line}\n`);
    },
    /** Writes a line above the progress, which stays. */
    say: (line: string): unknown => terminal.write(`${isDrawn ? ERASE_LINE : ""}${line}\n`),
    end: (): unknown => isDrawn && terminal.write(ERASE_LINE),
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
