/**
 * Looks up the addresses of receivers. `dns.lookup` would hold a thread of libuv, of which there are four, for as long as a name
 * server is silent, and cannot be cancelled; c-ares waits on a socket, within a time of its own.
 */
import type { LookupAddress, RecordWithTtl } from "node:dns";
import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { performance } from "node:perf_hooks";
import { limits } from "#shared/limits.ts";

/**
 * All addresses of a host, those of IPv4 first: a function outside of a VPC has no way out for IPv6. Throws NoAddress and
 * NotLookedUp.
 */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

/** The name server has answered: there is no such name, or it has no address. The receiver's owner can mend that. */
export class NoAddress extends Error {
  override readonly name = "NoAddress";
}

/** No name server has answered in time, or none of them could say. It tells nothing about the receiver. */
export class NotLookedUp extends Error {
  override readonly name = "NotLookedUp";
}

export interface NameSettings {
  /** Default: those of the system. */
  readonly servers?: readonly string[];
  /** Names in this file, and those under `localhost`, are looked up on this machine alone. */
  readonly hostsFile?: string;
  readonly lookupMs?: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/** What a host was found to be, good or bad, until then. */
interface Known {
  readonly outcome: readonly LookupAddress[] | NoAddress | NotLookedUp;
  readonly untilMs: number;
}

/** One look-up for each host at a time, whoever asks; a company has at most 40 hosts, so one alone cannot use up the number in all. */
export function nameResolver(settings: NameSettings = {}): Resolve {
  const { now = () => performance.now() } = settings;
  const known = new Map<string, Known>();
  const underWay = new Map<string, Promise<Known>>();

  function begin(host: string): Promise<Known> {
    const found = findOut(host, settings).then(({ outcome, keptMs }) => ({ outcome, untilMs: now() + keptMs }));
    underWay.set(host, found);
    const ended = (): boolean => underWay.delete(host);
    found.then((one) => {
      ended();
      keep(host, one);
    }, ended);
    return found;
  }

  function keep(host: string, one: Known): void {
    known.delete(host);
    if (one.untilMs <= now()) return;
    known.set(host, one);
    const [oldest] = known.keys();
    if (known.size > limits.namesKept && oldest !== undefined) known.delete(oldest);
  }

  return async (host) => {
    const name = withoutDot(host).toLowerCase();
    const family = isIP(name);
    if (family !== 0) return [{ address: name, family }];
    const kept = known.get(name);
    if (kept !== undefined && kept.untilMs > now()) return addressesOf(kept);
    const joined = underWay.get(name);
    if (joined === undefined && underWay.size >= limits.lookupsAtOnce) {
      throw new NotLookedUp(`${name} was not looked up: ${underWay.size} other names are being looked up`);
    }
    return addressesOf(await (joined ?? begin(name)));
  };
}

/** A name with a dot at its end is the same name. */
export const withoutDot = (host: string): string => host.replace(/\.+$/, "");

function addressesOf({ outcome }: Known): readonly LookupAddress[] {
  if (outcome instanceof Error) throw outcome;
  return outcome;
}

interface Found {
  readonly outcome: Known["outcome"];
  readonly keptMs: number;
}

async function findOut(name: string, settings: NameSettings): Promise<Found> {
  const own = settings.hostsFile === undefined ? [] : await onThisMachine(name, settings.hostsFile);
  return own.length > 0 ? { outcome: own, keptMs: 0 } : askServers(name, settings);
}

const LOOPBACK: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** RFC 6761: `localhost` and all names under it are loopback. */
async function onThisMachine(name: string, hostsFile: string): Promise<readonly LookupAddress[]> {
  if (/(?:^|\.)localhost$/.test(name)) return LOOPBACK;
  const lines = (await readFile(hostsFile, "utf8").catch(() => "")).split("\n");
  return lines.flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/);
    const family = isIP(address);
    return family !== 0 && names.map(withoutDot).includes(name) ? [{ address, family }] : [];
  });
}

/** What a name server says of one kind of address. */
type Said = readonly RecordWithTtl[] | "none" | { readonly why: string };

/** Once one kind of address is known, the other may take so much longer (RFC 8305 has 50 ms, for people who wait). */
const OTHER_MS = 250;

async function askServers(name: string, { servers, lookupMs = limits.lookupMs }: NameSettings): Promise<Found> {
  const resolver = new Resolver({ timeout: Math.ceil(lookupMs / 3), tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  let cancelling = setTimeout(() => resolver.cancel(), lookupMs);
  const hurry = (said: Said): Said => {
    if (typeof said === "object" && !("why" in said)) {
      clearTimeout(cancelling);
      cancelling = setTimeout(() => resolver.cancel(), Math.min(OTHER_MS, lookupMs));
    }
    return said;
  };
  try {
    const [four, six] = await Promise.all([
      resolver.resolve4(name, { ttl: true }).catch(saidBy).then(hurry),
      resolver.resolve6(name, { ttl: true }).catch(saidBy).then(hurry),
    ]);
    return judged(name, four, six);
  } finally {
    clearTimeout(cancelling);
  }
}

/** NXDOMAIN, and a name without such addresses, are answers; everything else is none. */
function saidBy(error: unknown): Said {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  return code === "ENOTFOUND" || code === "ENODATA" ? "none" : { why: code };
}

function judged(name: string, four: Said, six: Said): Found {
  const v4 = recordsOf(four);
  const v6 = recordsOf(six);
  const addresses = [
    ...v4.map(({ address }) => ({ address, family: 4 })),
    ...v6.map(({ address }) => ({ address, family: 6 })),
  ];
  if (addresses.length > 0) {
    const shortestSeconds = Math.min(...[...v4, ...v6].slice(0, ADDRESSES).map(({ ttl }) => ttl));
    return { outcome: addresses.slice(0, ADDRESSES), keptMs: Math.min(limits.nameKeptMs, shortestSeconds * 1_000) };
  }
  const silent = [four, six].flatMap((said) => (typeof said === "object" && "why" in said ? [said.why] : []));
  const [why] = silent;
  const outcome =
    why === undefined
      ? new NoAddress(`ENOTFOUND: ${name} has no address`)
      : new NotLookedUp(`${name} could not be looked up: no name server has answered (${why})`);
  return { outcome, keptMs: limits.noNameKeptMs };
}

/** An answer may hold thousands. Those beyond these are not called. */
const ADDRESSES = 64;

const recordsOf = (said: Said): readonly RecordWithTtl[] => (typeof said === "object" && !("why" in said) ? said : []);
