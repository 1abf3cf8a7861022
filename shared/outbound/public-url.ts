/**
 * Decides which receivers the service may call: https URLs with public addresses. The service checks a URL when it is saved and for each
 * connection, because the addresses of a name may change.
 */
import type { LookupAddress } from "node:dns";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { at } from "#shared/at.ts";
import type { UrlPolicy } from "#shared/config.ts";
import { ApiError } from "#shared/errors.ts";
import { createResolver, type Resolve, withoutTrailingDot } from "#shared/outbound/dns.ts";

/** The resolver for each URL policy. Only the policy `local`, for local development, reads the hosts file of this machine. */
const resolvers: Record<UrlPolicy, Resolve> = {
  public: createResolver(),
  local: createResolver({ hostsFile: "/etc/hosts" }),
};
export const resolverFor = (policy: UrlPolicy): Resolve => resolvers[policy];

/** Forbidden ranges that ipaddr.js reports as public, or to which it gives no clear name. */
const denied: ReadonlyArray<[prefix: string, name: string]> = [
  ["169.254.169.254/32", "instance metadata"],
  ["169.254.170.0/24", "container metadata"],
  ["168.63.129.16/32", "instance metadata"],
  ["fd00:ec2::/32", "instance metadata"],
  ["::/96", "IPv4-compatible"],
  ["64:ff9b::/96", "NAT64"],
  ["64:ff9b:1::/48", "NAT64"],
  ["2001::/32", "Teredo"],
  ["2002::/16", "6to4"],
  ["fec0::/10", "site-local"],
];
const deniedRanges = denied.map(([prefix, name]) => ({ range: ipaddr.parseCIDR(prefix), name }));

/** The only IPv6 range for public use. */
const GLOBAL_V6 = ipaddr.IPv6.parseCIDR("2000::/3");

function addressFault(address: string, policy: UrlPolicy): string | undefined {
  const bare = at(address.replace(/^\[|\]$/g, "").split("%"), 0);
  if (!ipaddr.isValid(bare)) return `${address} is no address`;
  // Converts an IPv4-mapped IPv6 address to IPv4.
  const parsed = ipaddr.process(bare);
  const range = parsed.range();
  if (range === "loopback") return policy === "local" ? undefined : `${bare} is a loopback address`;
  const known = deniedRanges.find(({ range }) => parsed.kind() === range[0].kind() && parsed.match(range));
  const isGlobal = !(parsed instanceof ipaddr.IPv6) || parsed.match(GLOBAL_V6);
  const name = known?.name ?? (range !== "unicast" ? range : isGlobal ? undefined : "not global unicast");
  return name === undefined ? undefined : `${bare} is not a public address (${name})`;
}

/** Returns why a host is forbidden. One forbidden address is enough. Undefined if all addresses are allowed. */
export const addressesFault = (addresses: readonly LookupAddress[], policy: UrlPolicy): string | undefined =>
  addresses.map(({ address }) => addressFault(address, policy)).find((fault) => fault !== undefined);

/** Names reserved for private networks (RFC 6761, RFC 6762 and ICANN's `.internal`). */
const privateName = /(?:^|\.)(localhost|local|internal)$/;

function nameFault(host: string, policy: UrlPolicy): string | undefined {
  const [, ending] = policy === "local" ? [] : (privateName.exec(host) ?? []);
  if (ending === undefined) return undefined;
  return ending === "localhost" ? `${host} is a loopback name` : `${host} is a name of private networks (.${ending})`;
}

/** Parses the URL of a receiver. Throws `validation_failed` with the rule that the URL violates. */
export function parseTarget(url: string, policy: UrlPolicy): URL {
  if (!URL.canParse(url)) throw targetError("must be a valid URL");
  const target = new URL(url);
  const schemes = policy === "local" ? ["https:", "http:"] : ["https:"];
  if (!schemes.includes(target.protocol)) throw targetError("must be an https URL");
  if (target.username !== "" || target.password !== "") throw targetError("must not contain a user name or password");
  // The URL parser has already converted spellings such as 127.1, 0x7f.1 and 2130706433.
  const host = hostOf(target);
  const fault = isIP(host) === 0 ? nameFault(host, policy) : addressFault(host, policy);
  if (fault !== undefined) throw targetError(`must name a public receiver: ${fault}`);
  return target;
}

/** Throws `validation_failed` for a forbidden URL. A name without an address is accepted, because each delivery checks the URL again. */
export async function assertTarget(
  url: string,
  policy: UrlPolicy,
  resolve: Resolve = resolverFor(policy),
): Promise<void> {
  const addresses = await resolve(hostOf(parseTarget(url, policy))).catch(() => []);
  const fault = addressesFault(addresses, policy);
  if (fault !== undefined) throw targetError(`must name a public receiver: ${fault}`);
}

const hostOf = ({ hostname }: URL): string => withoutTrailingDot(hostname.replace(/^\[|\]$/g, ""));

const targetError = (message: string): ApiError =>
  new ApiError("validation_failed", `The url ${message}.`, {
    faults: [{ pointer: "/url", code: "url_not_allowed", message }],
  });
