/** Rates of routes that cost more than others, for all callers together: what one of them may take, the rest of the API keeps. */
import type { Method } from "./routes/route.ts";

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Large answers for anybody on the internet: a reader needs each of them once. */
const PUBLIC_DOCUMENT: Rate = { perSecond: 5, burst: 20 };
/** Each keeps a function at work for seconds or minutes, or starts a job that does. */
const LONG_WORK: Rate = { perSecond: 20, burst: 100 };
/** A whole map: some 50 ms of a processor and megabytes. */
const MAP: Rate = { perSecond: 200, burst: 400 };

const rates: Readonly<Record<string, Rate>> = {
  "GET /openapi.json": PUBLIC_DOCUMENT,
  "GET /docs": PUBLIC_DOCUMENT,
  "GET /api/prospects/pins": MAP,
  "GET /api/prospects/export": LONG_WORK,
  "POST /api/prospects/import": LONG_WORK,
  "POST /api/prospects/imports": LONG_WORK,
  "POST /api/prospects/exports": LONG_WORK,
  "POST /api/webhooks/{id}/replay": LONG_WORK,
  "POST /api/webhooks/{id}/test": LONG_WORK,
};

/** Undefined: the stage's own. */
export const rateOf = ({ method, path }: { readonly method: Method; readonly path: string }): Rate | undefined =>
  rates[`${method} ${path}`];

/** Each names a route. */
export const ratedRoutes: readonly string[] = Object.keys(rates);
