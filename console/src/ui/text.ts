/** Dates, numbers, shares and amounts as text: English words, in the order and with the separators of the user's region. */
const [, region] = /^[a-z]+(?:-[A-Z][a-z]+)?-([A-Z]{2})/.exec(navigator.language) ?? [];
const locale = region === undefined ? "en" : `en-${region}`;

const date = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const time = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const number = new Intl.NumberFormat(locale);
const share = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 });
const distance = new Intl.RelativeTimeFormat(locale);

export const dateText = (iso: string): string => date.format(new Date(iso));
export const timeText = (iso: string): string => time.format(new Date(iso));
export const numberText = (value: number): string => number.format(value);

/** Returns a share between 0 and 1 as a percentage. */
export const shareText = (value: number): string => share.format(value);

/** Returns a number together with its noun, for example `1 prospect` or `2 prospects`. */
export const amount = (value: number, one: string, many = `${one}s`): string =>
  `${numberText(value)} ${value === 1 ? one : many}`;

const WEEK_MS = 7 * 86_400_000;
const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** Returns how long ago a time was, or how soon it will be, for example `3 hours ago`. Beyond a week, returns the date. */
export function distanceText(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  if (Math.abs(ms) >= WEEK_MS) return dateText(iso);
  const unit = units.find(([, length]) => Math.abs(ms) >= length);
  return unit === undefined ? "now" : distance.format(Math.trunc(ms / unit[1]), unit[0]);
}

/** Returns a time in the browser's time zone, as the value of an input of the type `datetime-local`. */
export const localTime = (timeMs: number): string =>
  new Date(timeMs - new Date(timeMs).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
