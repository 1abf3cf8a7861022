/** How far it is: one line that is written over on a terminal, a line now and then anywhere else. */

export interface Step {
  /** What goes on, e.g. `checking`. */
  readonly name: string;
  readonly done: number;
  /** Undefined where nobody knows yet. */
  readonly total?: number | undefined;
  readonly unit: "rows" | "bytes";
  readonly errors?: number;
}

export interface Progress {
  show(step: Step): void;
  /** A line of its own. */
  say(line: string): void;
  /** Nothing of it stays on the terminal. */
  end(): void;
}

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const PLAIN_EVERY_MS = 2_000;
const DRAWN_EVERY_MS = 100;
const BAR = 24;
const ERASE_LINE = "\r\u001B[K";

export function openProgress(terminal: Terminal = process.stderr): Progress {
  const isDrawn = terminal.isTTY === true;
  const rate = rateMeter();
  let shownAt = 0;
  let shown = "";
  return {
    show(step) {
      const perSecond = rate(step);
      const now = Date.now();
      const isNew = shown !== step.name;
      if (!isNew && now - shownAt < (isDrawn ? DRAWN_EVERY_MS : PLAIN_EVERY_MS)) return;
      shownAt = now;
      shown = step.name;
      const line = lineOf(step, perSecond, isDrawn);
      terminal.write(isDrawn ? `${ERASE_LINE}${line.slice(0, (terminal.columns ?? 80) - 1)}` : `${line}\n`);
    },
    say: (line) => terminal.write(`${isDrawn ? ERASE_LINE : ""}${line}\n`),
    end() {
      if (isDrawn) terminal.write(ERASE_LINE);
    },
  };
}

/** Since the step of this name began. */
function rateMeter(): (step: Step) => number | undefined {
  let began = { name: "", at: 0, done: 0 };
  return ({ name, done }) => {
    const now = Date.now();
    if (began.name !== name) began = { name, at: now, done };
    const seconds = (now - began.at) / 1_000;
    return seconds < 0.2 ? undefined : (done - began.done) / seconds;
  };
}

export function lineOf(
  { name, done, total, unit, errors }: Step,
  perSecond: number | undefined,
  isDrawn: boolean,
): string {
  const size = (count: number): string => (unit === "bytes" ? megabytes(count) : digits(count));
  const share = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
  const parts = [
    ...(share === undefined ? [] : [`${isDrawn ? bar(share) : ""}${String(Math.floor(share * 100)).padStart(3)} %`]),
    `${size(done)}${total === undefined ? "" : ` of ${size(total)}`}${unit === "rows" ? " rows" : ""}`,
    ...(perSecond === undefined ? [] : [`${size(Math.round(perSecond))}${unit === "rows" ? " rows" : ""}/s`]),
    ...(errors === undefined ? [] : [`${digits(errors)} errors`]),
  ];
  return `${name} ${parts.join(", ")}`;
}

const bar = (share: number): string => `[${"#".repeat(Math.floor(share * BAR)).padEnd(BAR, ".")}]`;
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** 1,234,567. */
export const digits = (count: number): string => count.toLocaleString("en-US");
