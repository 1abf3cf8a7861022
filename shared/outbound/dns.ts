/** Resolves host names with c-ares, because `dns.lookup` cannot be cancelled and occupies one of libuv's four threads while it waits. */
import type { LookupAddress, RecordWithTtl } from "node:dns";
import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { performance } from "node:perf_hooks";
import { LRUCache } from "lru-cache";
import * as limits from "#shared/limits.ts";

/** Returns IPv4 addresses first, because a Lambda function outside a VPC cannot reach IPv6 addresses. Throws NoAddress or LookupFailed. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

/** The host name does not exist or has no address. The owner of the receiver must correct this. */
export class NoAddress extends Error {
  override readonly name = "NoAddress";
}

/** The name servers gave no usable answer in time, or too many look-ups were running. The receiver itself may be working. */
export class LookupFailed extends Error {
  override readonly name = "LookupFailed";
}

export interface ResolverSettings {
  /** The addresses of the name servers. The default is the system's list. */
  readonly servers?: readonly string[];
  /** Names in this hosts file are resolved without a name server. */
  readonly hostsFile?: string;
  readonly lookupMs?: number;
  /** Returns milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

interface Cached {
  readonly outcome: readonly LookupAddress[] | NoAddress | LookupFailed;
  readonly untilMs: number;
}

/** Concurrent requests for one host share a look-up. A company has at most 40 webhooks, so it cannot use all `lookupsAtOnce` look-ups. */
export function createResolver(settings: ResolverSettings = {}): Resolve {
  const { now = () => performance.now() } = settings;
  const cache = new LRUCache<string, Cached>({ max: limits.namesKept });
  const pending = new Map<string, Promise<Cached>>();

  function begin(host: string): Promise<Cached> {
    const found = lookUp(host, settings).then(({ outcome, keptMs }) => ({ outcome, untilMs: now() + keptMs }));
    pending.set(host, found);
    const ended = (): boolean => pending.delete(host);
    found.then((entry) => {
      ended();
      cache.set(host, entry);
    }, ended);
    return found;
  }

  return async (host) => {
    const name = withoutTrailingDot(host).toLowerCase();
    const family = isIP(name);
    if (family !== 0) return [{ address: name, family }];
    const cached = cache.get(name);
    if (cached !== undefined && cached.untilMs > now()) return addressesOf(cached);
    const joined = pending.get(name);
    if (joined === undefined && pending.size >= limits.lookupsAtOnce) {
      throw new LookupFailed(`${name} was not looked up: ${pending.size} other look-ups are in progress`);
    }
    return addressesOf(await (joined ?? begin(name)));
  };
}

/** `example.com.` and `example.com` are the same name. */
export const withoutTrailingDot = (host: string): string => host.replace(/\.+$/, "");

function addressesOf({ outcome }: Cached): readonly LookupAddress[] {
  if (outcome instanceof Error) throw outcome;
  return outcome;
}

interface Found {
  readonly outcome: Cached["outcome"];
  readonly keptMs: number;
}

async function lookUp(name: string, settings: ResolverSettings): Promise<Found> {
  const local = settings.hostsFile === undefined ? [] : await localAddresses(name, settings.hostsFile);
  return local.length > 0 ? { outcome: local, keptMs: 0 } : askServers(name, settings);
}

const LOOPBACK: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** Returns the addresses in the hosts file. `localhost` and `*.localhost` always have loopback addresses (RFC 6761). */
async function localAddresses(name: string, hostsFile: string): Promise<readonly LookupAddress[]> {
  if (/(?:^|\.)localhost$/.test(name)) return LOOPBACK;
  const lines = (await readFile(hostsFile, "utf8").catch(() => "")).split("\n");
  return lines.flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/);
    const family = isIP(address);
    return family !== 0 && names.map(withoutTrailingDot).includes(name) ? [{ address, family }] : [];
  });
}

/** The answer of a name server. "none" means that the name has no records of the requested kind (IPv4 or IPv6). */
type Reply = readonly RecordWithTtl[] | "none" | { readonly failure: string };

/** IPv4 and IPv6 addresses are requested together. After one answer, the other may take this time. RFC 8305 suggests 50 ms. */
const SECOND_FAMILY_MS = 250;

async function askServers(name: string, { servers, lookupMs = limits.lookupMs }: ResolverSettings): Promise<Found> {
  const resolver = new Resolver({ timeout: Math.ceil(lookupMs / 3), tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  let deadline = setTimeout(() => resolver.cancel(), lookupMs);
  const shortenDeadline = (reply: Reply): Reply => {
    if (typeof reply === "object" && !("failure" in reply)) {
      clearTimeout(deadline);
      deadline = setTimeout(() => resolver.cancel(), Math.min(SECOND_FAMILY_MS, lookupMs));
    }
    return reply;
  };
  try {
    const [v4, v6] = await Promise.all([
      resolver.resolve4(name, { ttl: true }).catch(replyOfError).then(shortenDeadline),
      resolver.resolve6(name, { ttl: true }).catch(replyOfError).then(shortenDeadline),
    ]);
    return foundIn(name, v4, v6);
  } finally {
    clearTimeout(deadline);
  }
}

/** Converts an error of the resolver to a reply. The error that a name has no records is a valid reply, "none". */
function replyOfError(error: unknown): Reply {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  return code === "ENOTFOUND" || code === "ENODATA" ? "none" : { failure: code };
}

/** Maximum number of addresses of a name. A hostile answer may contain thousands. */
const ADDRESSES = 64;

function foundIn(name: string, v4: Reply, v6: Reply): Found {
  const records = [
    ...recordsOf(v4).map((record) => ({ ...record, family: 4 })),
    ...recordsOf(v6).map((record) => ({ ...record, family: 6 })),
  ].slice(0, ADDRESSES);
  if (records.length > 0) {
    const shortestSeconds = Math.min(...records.map(({ ttl }) => ttl));
    const addresses = records.map(({ address, family }) => ({ address, family }));
    return { outcome: addresses, keptMs: Math.min(limits.nameKeptMs, shortestSeconds * 1_000) };
  }
  const [failure] = [v4, v6].flatMap((reply) =>
    typeof reply === "object" && "failure" in reply ? [reply.failure] : [],
  );
  const outcome =
    failure === undefined
      ? new NoAddress(`ENOTFOUND: ${name} has no address`)
      : new LookupFailed(`${name} could not be looked up: no name server answered (${failure})`);
  return { outcome, keptMs: limits.noNameKeptMs };
}

const recordsOf = (reply: Reply): readonly RecordWithTtl[] =>
  typeof reply === "object" && !("failure" in reply) ? reply : [];
