/** Dates, numbers, shares and amounts as text. */
const date = new Intl.DateTimeFormat("en", { dateStyle: "medium" });
const time = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const number = new Intl.NumberFormat("en");
const share = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

export const dateText = (iso: string): string => date.format(new Date(iso));
export const timeText = (iso: string): string => time.format(new Date(iso));
export const numberText = (value: number): string => number.format(value);

/** Returns a part of 1 as a percentage. */
export const shareText = (value: number): string => share.format(value);

/** Returns a number together with its noun, for example `1 prospect` or `2 prospects`. */
export const amount = (value: number, one: string, many = `${one}s`): string =>
  `${numberText(value)} ${value === 1 ? one : many}`;
